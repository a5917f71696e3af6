import type { JsonValue } from "@bufbuild/protobuf";
import { Refusal, UpstreamError } from "@depute/mcp";
import { type HttpRequest, type HttpResponse, sendJson, takeBody } from "@depute/service";
import { parseJson } from "@depute/wire";
import { JSON_TYPES, refuseBody, type WireDeps } from "../../src/json-rpc-route.ts";
import { type ErrorRow, JSON_RPC } from "../../src/own-codes.ts";
import { sendWebResponse, toWebRequest } from "./http.ts";

/** Made once: an error with a stack for every request that ends would cost more than most of the rest. */
const CLIENT_LEFT = new Error("the client has left");
/** Levels of nesting of a request, its envelope among them. */
const MAX_DEPTH = 42;

/** Answers a request whose body was parsed once; what is judged is what is forwarded. */
export type AnswerMcp = (request: Request, body: JsonValue | undefined, url: string) => Promise<Response>;

/** Answers MCP's Streamable HTTP at an address. */
export async function answerMcp(
  answer: AnswerMcp,
  path: string,
  deps: WireDeps,
  request: HttpRequest,
  response: HttpResponse,
): Promise<void> {
  let body: JsonValue | undefined;
  if (request.method === "POST") {
    let bytes: Buffer;
    try {
      bytes = await takeBody(request, JSON_TYPES, deps.bodies);
    } catch (thrown) {
      return refuseBody(response, thrown);
    }
    const parsed = parseJson(bytes, { maxBytes: bytes.length, maxDepth: MAX_DEPTH });
    if (!parsed.ok) return refuse(response, 400, JSON_RPC.PARSE_ERROR, parsed.error.message);
    // Revisions since 2025-06-18 have no batches, and a proof is for one call.
    if (Array.isArray(parsed.value)) {
      return refuse(response, 400, JSON_RPC.INVALID_REQUEST, "batches are not answered here");
    }
    body = parsed.value;
  }
  const left = new AbortController();
  response.once("close", () => {
    if (!response.writableFinished) left.abort(CLIENT_LEFT);
  });
  const url = `${deps.publicUrl}${path}`;
  try {
    await sendWebResponse(await answer(toWebRequest(request, url, left.signal), body, url), response);
  } catch (thrown) {
    if (response.headersSent || response.destroyed) {
      response.destroy();
      return;
    }
    sendJson(response, 200, { jsonrpc: "2.0", id: idOf(body), error: errorOf(thrown) });
  }
}

function errorOf(thrown: unknown): ErrorRow & { data: JsonValue } {
  if (thrown instanceof Refusal) {
    const { code, message, data } = thrown;
    return { code, message, data };
  }
  if (!(thrown instanceof UpstreamError)) throw thrown;
  const data = { reason: "DEPENDENCY_UNAVAILABLE", detail: thrown.message };
  return { ...JSON_RPC.INTERNAL_ERROR, message: "the MCP server failed", data };
}

function idOf(body: JsonValue | undefined): JsonValue {
  const id = typeof body === "object" && body !== null && !Array.isArray(body) ? body.id : null;
  return typeof id === "string" || typeof id === "number" ? id : null;
}

function refuse(response: HttpResponse, status: number, row: ErrorRow, detail: string): void {
  sendJson(response, status, { jsonrpc: "2.0", id: null, error: { ...row, data: { detail } } });
}
