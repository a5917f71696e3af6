import type { JsonValue } from "@bufbuild/protobuf";
import { Refusal, UpstreamError } from "@depute/mcp";
import { parseJson } from "@depute/wire";
import { type ErrorRow, JSON_RPC } from "../../edge/own-codes.ts";
import type { WebWireRequest } from "../../edge/route.ts";

/** Maximum depth of JSON nesting in a request, including the JSON-RPC object around the parameters. */
const MAX_DEPTH = 42;

/**
 * Answers a request of MCP's Streamable HTTP. The body is parsed only once, so that the proxy forwards exactly the
 * value that it checked.
 *
 * @throws every error that is neither a refusal of the proxy nor a failure of the server behind the proxy
 */
export async function answerMcp(
  { body }: WebWireRequest,
  answer: (body: JsonValue | undefined) => Promise<Response>,
): Promise<Response> {
  let value: JsonValue | undefined;
  if (body !== undefined) {
    const parsed = parseJson(body.bytes, { maxBytes: body.bytes.length, maxDepth: MAX_DEPTH });
    if (!parsed.ok) return refuse(JSON_RPC.PARSE_ERROR, parsed.error.message);
    // Refuses batches: MCP revisions since 2025-06-18 have no batches, and a holder proof covers only one call.
    if (Array.isArray(parsed.value))
      return refuse(JSON_RPC.INVALID_REQUEST, "a batch is not supported: send one call for each request");
    value = parsed.value;
  }
  try {
    return await answer(value);
  } catch (thrown) {
    return Response.json({ jsonrpc: "2.0", id: idOf(value), error: errorOf(thrown) });
  }
}

/** Returns the id of a request; null if the request has no id. */
export function idOf(body: JsonValue | undefined): JsonValue {
  const id = typeof body === "object" && body !== null && !Array.isArray(body) ? body.id : null;
  return typeof id === "string" || typeof id === "number" ? id : null;
}

function refuse(row: ErrorRow, detail: string): Response {
  return Response.json({ jsonrpc: "2.0", id: null, error: { ...row, data: { detail } } }, { status: 400 });
}

/**
 * Converts a refusal of the proxy, or a failure of the server behind the proxy, to the call's error.
 *
 * @throws the thrown value, if it is neither of these
 */
function errorOf(thrown: unknown): ErrorRow & { data: JsonValue } {
  if (thrown instanceof Refusal) {
    const { code, message, data } = thrown;
    return { code, message, data };
  }
  if (!(thrown instanceof UpstreamError)) throw thrown;
  const data = { reason: "DEPENDENCY_UNAVAILABLE", detail: thrown.message };
  return { ...JSON_RPC.INTERNAL_ERROR, message: "the MCP server failed", data };
}
