import { type Clock, ErrorReason, reasonName, type Timers } from "@depute/core";
import {
  type BodyLimits,
  bodyStatusOf,
  CHALLENGE,
  type HttpResponse,
  type HttpRoute,
  type Logger,
  type PathParameters,
  reasonOf,
  sendJson,
  takeBody,
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
  /** The bounds of a request's body. */
  readonly bodies: BodyLimits;
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
    takes: JSON_TYPES,
    async handle(request, response, parameters) {
      let body: Buffer;
      try {
        body = await takeBody(request, JSON_TYPES, deps.bodies);
      } catch (thrown) {
        return refuseBody(response, thrown);
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

/** The media type of JSON-RPC. */
export const JSON_TYPES = ["application/json"];

const REFUSALS = {
  408: OWN.DEADLINE_EXCEEDED,
  413: OWN.LIMIT_EXCEEDED,
  415: JSON_RPC.INVALID_REQUEST,
} as const;

/**
 * Answers a request whose body is refused, in JSON-RPC's form.
 *
 * @throws what was thrown, if it refuses no body
 */
export function refuseBody(response: HttpResponse, thrown: unknown): void {
  const refusal = refusalIn(thrown);
  const status = bodyStatusOf(refusal);
  if (status === undefined) throw thrown;
  const { reason, message: detail, metadata } = refusal;
  const error = { ...REFUSALS[status], data: { reason: reasonName(reason), detail, metadata } };
  sendJson(response, status, { jsonrpc: "2.0", id: null, error });
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
