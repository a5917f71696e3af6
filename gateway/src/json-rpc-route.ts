import { type Clock, DeputeError, ErrorReason, reasonName, type Timers } from "@depute/core";
import {
  CHALLENGE,
  type HttpRequest,
  type HttpResponse,
  type HttpRoute,
  type Logger,
  type PathParameters,
  readBody,
  reasonOf,
  sendJson,
} from "@depute/service";
import { refusalIn } from "./fault.ts";
import { answerJsonRpc, type CallNote, type JsonRpcEndpoint } from "./json-rpc.ts";
import { JSON_RPC, OWN } from "./own-codes.ts";
import { sendEvents } from "./sse.ts";
import { type WireCall, wireCall } from "./wire-call.ts";

/** What every wire is given. */
export interface WireDeps {
  readonly log: Logger;
  readonly clock: Clock;
  readonly timers: Timers;
  /** The address under which clients know the platform, without a trailing slash; known once it listens. */
  readonly publicUrl: string;
  /** Aborts when the process drains. */
  readonly stopping: AbortSignal;
  /** Bytes of a request's body. */
  readonly maxBodyBytes: number;
  /** Milliseconds that a request's body may take to come. */
  readonly bodyTimeoutMs: number;
}

/**
 * An address that answers JSON-RPC 2.0 over HTTP POST.
 *
 * Errors of a call are answered with status 200, since clients look no further at others; 401 says that credentials
 * are missing or wrong, 408, 413 and 415 that the body was not read.
 */
export function jsonRpcRoute(
  path: string,
  endpointOf: (parameters: PathParameters) => JsonRpcEndpoint,
  deps: WireDeps,
): HttpRoute {
  return {
    methods: ["POST"],
    path,
    async handle(request, response, parameters) {
      if (!isJson(request)) return refuse(response, 415, "the content type must be application/json");
      const body = await readLimited(request, deps);
      if (body === "too long") {
        return refuse(response, 413, `the body is longer than ${deps.maxBodyBytes} bytes`);
      }
      if (body === "too slow") {
        return refuse(response, 408, `the body did not come within ${deps.bodyTimeoutMs} ms`);
      }
      const call = wireCall(request, response, deps.publicUrl);
      const begin = performance.now();
      const note = (what: CallNote) => noteCall(deps.log, path, call, what, performance.now() - begin);
      const answer = await answerJsonRpc(endpointOf(parameters), body, call, note);
      switch (answer.kind) {
        case "events":
          return sendEvents(response, answer.events, deps);
        case "json":
          return sendJson(response, answer.unauthenticated ? 401 : 200, answer.body);
        case "nothing":
          if (answer.unauthenticated) response.setHeader("www-authenticate", CHALLENGE["www-authenticate"]);
          response.statusCode = answer.unauthenticated ? 401 : 204;
          response.end();
      }
    },
  };
}

function isJson(request: HttpRequest): boolean {
  const type = String(request.headers["content-type"] ?? "");
  return type.split(";", 1)[0]?.trim().toLowerCase() === "application/json";
}

async function readLimited(
  request: HttpRequest,
  { maxBodyBytes, bodyTimeoutMs, timers }: WireDeps,
): Promise<Buffer | "too long" | "too slow"> {
  let cancel = () => {};
  const tooSlow = new Promise<"too slow">((resolve) => {
    cancel = timers.after(bodyTimeoutMs, () => resolve("too slow"));
  });
  const read = readBody(request, maxBodyBytes).catch((error: unknown) => {
    if (error instanceof DeputeError && error.reason === ErrorReason.LIMIT_EXCEEDED)
      return "too long" as const;
    throw error;
  });
  try {
    return await Promise.race([read, tooSlow]);
  } finally {
    cancel();
    // What comes too late, or breaks off then, is nobody's.
    read.catch(() => {});
  }
}

const REFUSALS = {
  408: OWN.DEADLINE_EXCEEDED,
  413: OWN.LIMIT_EXCEEDED,
  415: JSON_RPC.INVALID_REQUEST,
} as const;

function refuse(response: HttpResponse, status: keyof typeof REFUSALS, detail: string): void {
  const row = REFUSALS[status];
  // The rest of the body is not read. HTTP/2 knows no such header, and needs none.
  const headers: Record<string, string> = "stream" in response ? {} : { connection: "close" };
  sendJson(response, status, { jsonrpc: "2.0", id: null, error: { ...row, data: { detail } } }, headers);
}

/** Served at debug, refused at info, a fault of ours at error with its cause. */
function noteCall(log: Logger, path: string, call: WireCall, note: CallNote, ms: number): void {
  const { method, code, thrown } = note;
  const fields: Record<string, unknown> = {
    path,
    method: method.slice(0, 64),
    code,
    ms: Math.round(ms * 100) / 100,
    request_id: call.requestId,
  };
  if (thrown === undefined || call.signal.aborted) {
    log.debug(fields, "json-rpc");
    return;
  }
  const { reason } = refusalIn(thrown);
  fields.reason = reasonName(reason);
  // A service that said INTERNAL has logged its cause itself.
  const isOurs = reason === ErrorReason.INTERNAL && reasonOf(thrown) === undefined;
  if (isOurs) log.error({ ...fields, err: thrown }, "json-rpc");
  else log.info(fields, "json-rpc");
}
