import type { JsonValue } from "@bufbuild/protobuf";
import type { CallOptions, HandlerContext } from "@connectrpc/connect";
import { type Clock, decodeBase64Url, isObject } from "@depute/core";
import {
  forwardOptions,
  forwardWireHeaders,
  type HttpRequest,
  type HttpResponse,
  ownHeaders,
  ownOptions,
  REQUEST_ID_HEADER,
  requestIdFrom,
  requestIdOf,
} from "@depute/service";
import { parseJson } from "@depute/wire";

/** One request of a wire, as the calls to services that it leads to need it. */
export interface WireCall {
  /**
   * Options of the one call that decides: the caller's credentials go with it. A holder proof counts once (RFC 9449), so
   * a request makes one call with these.
   */
  readonly asCaller: CallOptions;
  /** Options of the look-ups beside it: the caller's credentials too, unless they would be used up by them. */
  readonly aside: CallOptions;
  /**
   * The principal by whose sight look-ups aside are to be answered: empty where they carry the caller's own credentials,
   * undefined where the gateway cannot tell. Good once the call that decides was let through: it checked the proof.
   */
  readonly viewer: string | undefined;
  /** Aborts when the client has left. */
  readonly signal: AbortSignal;
  readonly requestId: string;
  /** The last event that the client saw of the stream that it takes up again (`Last-Event-ID`). */
  readonly lastEventId?: string;
  /** Whether the client names `text/event-stream` among what it accepts. */
  readonly acceptsEvents: boolean;
  /** Whether the client takes `text/event-stream`: by its name, by a range such as `*\/*`, or because it names nothing. */
  readonly takesEvents: boolean;
}

/** The header of a holder proof. */
const PROOF = "dpop";

/**
 * The call of a request over plain HTTP.
 *
 * @param publicUrl the address under which clients know the platform, without a trailing slash: a holder proof names it
 */
export function wireCall(request: HttpRequest, response: HttpResponse, publicUrl: string): WireCall {
  const received = receivedHeaders(request);
  const requestId = requestIdFrom(String(response.getHeader(REQUEST_ID_HEADER) ?? ""));
  const path = request.url?.split("?", 1)[0] ?? "";
  const wire = { htm: request.method ?? "", htu: `${publicUrl}${path}` };
  const headers = forwardWireHeaders(received, wire, requestId);
  const signal = untilClosed(response);
  const asCaller = { headers, signal };
  const lastEventId = received.get("last-event-id");
  return {
    asCaller,
    aside: received.has(PROOF) ? { headers: ownHeaders(requestId), signal } : asCaller,
    viewer: holderOf(received.get(PROOF)),
    signal,
    requestId,
    acceptsEvents: acceptsEvents(received.get("accept")),
    takesEvents: takesEvents(received.get("accept")),
    ...(lastEventId === null ? {} : { lastEventId }),
  };
}

/** The call of an RPC that a wire serves. */
export function rpcCall(context: HandlerContext, clock: Clock): WireCall {
  const asCaller = forwardOptions(context, clock);
  return {
    asCaller,
    aside: context.requestHeader.has(PROOF) ? ownOptions(context, clock) : asCaller,
    viewer: holderOf(context.requestHeader.get(PROOF)),
    signal: context.signal,
    requestId: requestIdOf(context),
    acceptsEvents: false,
    takesEvents: true,
  };
}

function acceptsEvents(accept: string | null): boolean {
  const types = (accept ?? "").split(",");
  return types.some((type) => type.split(";", 1)[0]?.trim().toLowerCase() === "text/event-stream");
}

/** Whether a field `Accept` lets an event stream through: the most specific range decides. (RFC 9110 section 12.5.1) */
export function takesEvents(accept: string | null): boolean {
  if (accept === null || accept.trim() === "") return true;
  const qualities = new Map<string, number>();
  for (const range of accept.split(",")) {
    const [type = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
    const quality = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
    qualities.set(type, quality === undefined ? 1 : Number(quality));
  }
  for (const range of ["text/event-stream", "text/*", "*/*"]) {
    const quality = qualities.get(range);
    if (quality !== undefined) return quality > 0;
  }
  return false;
}

/** The key that a holder proof names (RFC 9449 4.2); empty without a proof, undefined for one that names none itself. */
export function holderOf(proof: string | null): string | undefined {
  if (proof === null) return "";
  const header = decodeBase64Url(proof.split(".", 1)[0] ?? "");
  if (header === undefined) return undefined;
  const parsed = parseJson(header, { maxBytes: MAX_PROOF_HEADER_BYTES });
  const jwk = parsed.ok ? member(parsed.value, "jwk") : undefined;
  const x = member(jwk, "x");
  return typeof x === "string" && x !== "" ? x : undefined;
}

const MAX_PROOF_HEADER_BYTES = 4096;

function member(value: JsonValue | undefined, name: string): JsonValue | undefined {
  return isObject(value) && Object.hasOwn(value, name) ? (value[name] as JsonValue) : undefined;
}

function receivedHeaders(request: HttpRequest): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    // HTTP/2's own come with a colon; only `set-cookie`, which no request has, is a list.
    if (typeof value === "string" && !name.startsWith(":")) headers.set(name, value);
  }
  return headers;
}

/** Aborts when the response is over, sent or not. */
function untilClosed(response: HttpResponse): AbortSignal {
  const controller = new AbortController();
  response.once("close", () => controller.abort());
  return controller.signal;
}
