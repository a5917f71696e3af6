import { randomUUID } from "node:crypto";
import type { JSONRPCErrorResponse, RequestId } from "@modelcontextprotocol/client";
import { INTERNAL_ERROR } from "./rules/refusal.ts";

/** Tells this process's own answers from errors of a server. */
const MARK = randomUUID();

/** Stands for an answer that is too large to be taken. */
export function oversize(id: RequestId, maxBytes: number): JSONRPCErrorResponse {
  const message = `the message has more than ${maxBytes} bytes`;
  return {
    jsonrpc: "2.0",
    id,
    error: { code: INTERNAL_ERROR, message, data: { mark: MARK, max: maxBytes } },
  };
}

/** The bytes that an answer may have, where an error's data is of one that has more; undefined for any other error. */
export function limitOfOversize(data: unknown): number | undefined {
  if (typeof data !== "object" || data === null || !("mark" in data) || data.mark !== MARK) return undefined;
  return "max" in data ? Number(data.max) : undefined;
}
