import { randomUuid } from "@depute/core";
import type { JSONRPCErrorResponse, RequestId } from "@modelcontextprotocol/client";
import { INTERNAL_ERROR } from "./rules/refusal.ts";

/** A random text in the data of this process's own errors, which distinguishes these errors from a server's. */
const MARK = randomUuid();

/** Creates the response that replaces a response over the size limit. */
export function oversize(id: RequestId, maxBytes: number): JSONRPCErrorResponse {
  const message = `the message has more than ${maxBytes} bytes`;
  return {
    jsonrpc: "2.0",
    id,
    error: { code: INTERNAL_ERROR, message, data: { mark: MARK, max: maxBytes } },
  };
}

/** Returns the size limit in the data of an oversize error; undefined if the data belongs to another error. */
export function limitOfOversize(data: unknown): number | undefined {
  if (typeof data !== "object" || data === null || !("mark" in data) || data.mark !== MARK) return undefined;
  return "max" in data ? Number(data.max) : undefined;
}
