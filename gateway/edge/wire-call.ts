import type { JsonValue } from "@bufbuild/protobuf";
import type { CallOptions, HandlerContext } from "@connectrpc/connect";
import { type Clock, decodeBase64Url, isObject } from "@depute/core";
import { sha256Hex } from "@depute/core/sha256";
import {
  certificateOfRequest,
  forwardOptions,
  forwardWireHeaders,
  type HttpRequest,
  type HttpResponse,
  ownHeaders,
  ownOptions,
  PlainHeaders,
  REQUEST_ID_HEADER,
  requestIdFrom,
  requestIdOf,
} from "@depute/service";
import { parseJson } from "@depute/wire";
import type { WireDeps } from "./wire-deps.ts";

/** The data of one client request that a wire needs for its calls to services. */
export interface WireCall {
  /**
   * Options of the main call to a service. They contain the caller's credentials. A holder proof is valid for one call
   * (RFC 9449), so a handler makes only one call with these options.
   */
  readonly asCaller: CallOptions;
  /** Whether a call was made with `asCaller`. The request's holder proof is then used up. */
  readonly wasPresented: () => boolean;
  /**
   * Options of all other calls for the same request. They contain the caller's credentials unless the request has a
   * holder proof, because a proof is valid only once.
   */
  readonly aside: CallOptions;
  /**
   * The principal for whom a handler reads with `aside`: the key that the holder proof names. Empty without a holder
   * proof, because then `aside` contains the caller's own credentials. Undefined if the proof names no key. The value
   * is valid only after a service has accepted a call with `asCaller`, because that service verifies the holder
   * proof.
   */
  readonly viewer: string | undefined;
  /**
   * A digest of the request's credentials: its secret, the key of its holder proof and its certificate. Empty for a
   * request without credentials. The credentials are not verified, because only a call to a service verifies them.
   */
  readonly credentialsDigest: string;
  /**
   * Aborts when the client disconnects. For a request over plain HTTP, the signal also aborts when the answer is
   * complete.
   */
  readonly signal: AbortSignal;
  readonly requestId: string;
  /**
   * The id of the last event that the client has received, from `Last-Event-ID`; absent unless the client resumes a
   * stream.
   */
  readonly lastEventId?: string;
  /**
   * Whether the client accepts `text/event-stream`: by name, by a range such as `*\/*`, or by the absence of an
   * `accept` header.
   */
  readonly takesEvents: boolean;
}

/** Name of the header that contains a holder proof. */
const PROOF = "dpop";

/**
 * Collects the call data of a request over plain HTTP.
 *
 * @param wireName the name of the wire, for the audit log
 * @param timeoutMs timeout of each call to a service in milliseconds; if absent, unary calls have the platform's
 * default timeout, and streams have none
 */
export function wireCall(
  request: HttpRequest,
  response: HttpResponse,
  { publicUrl, addresses }: Pick<WireDeps, "publicUrl" | "addresses">,
  wireName: string,
  timeoutMs?: number,
): WireCall {
  const received = PlainHeaders.received(request.headers);
  const requestId = requestIdFrom(String(response.getHeader(REQUEST_ID_HEADER) ?? ""));
  const path = request.url?.split("?", 1)[0] ?? "";
  const edge = { address: addresses.ofRequest(request), wire: wireName };
  const wire = { htm: request.method ?? "", htu: `${publicUrl}${path}`, edge };
  const headers = forwardWireHeaders(received, wire, requestId, certificateOfRequest(request));
  const signal = untilClosed(response);
  let isPresented = false;
  const common = { signal, ...(timeoutMs !== undefined && { timeoutMs }) };
  const asCaller = {
    ...common,
    get headers() {
      isPresented = true;
      return headers;
    },
  };
  const lastEventId = received.get("last-event-id");
  return {
    asCaller,
    wasPresented: () => isPresented,
    aside: received.has(PROOF) ? { ...common, headers: ownHeaders(requestId) } : asCaller,
    viewer: holderOf(received.get(PROOF)),
    get credentialsDigest() {
      return credentialsOf(received, certificateOfRequest(request));
    },
    signal,
    requestId,
    takesEvents: accepts(received.get("accept") ?? undefined, EVENT_STREAM),
    ...(lastEventId === null ? {} : { lastEventId }),
  };
}

/** Collects the call data of an RPC that a wire serves. */
export function rpcCall(context: HandlerContext, clock: Clock): WireCall {
  const asCaller = forwardOptions(context, clock);
  return {
    asCaller,
    aside: context.requestHeader.has(PROOF) ? ownOptions(context, clock) : asCaller,
    viewer: holderOf(context.requestHeader.get(PROOF)),
    get credentialsDigest() {
      return credentialsOf(context.requestHeader);
    },
    signal: context.signal,
    requestId: requestIdOf(context),
    wasPresented: () => true,
    takesEvents: true,
  };
}

/**
 * Returns the key that a holder proof names (RFC 9449 4.2). Returns an empty text if there is no proof; undefined if
 * the proof names no key.
 */
export function holderOf(proof: string | null): string | undefined {
  if (proof === null) return "";
  const header = decodeBase64Url(proof.split(".", 1)[0] ?? "");
  if (header === undefined) return undefined;
  const parsed = parseJson(header, { maxBytes: MAX_PROOF_HEADER_BYTES });
  const jwk = parsed.ok ? member(parsed.value, "jwk") : undefined;
  const x = member(jwk, "x");
  return typeof x === "string" && x !== "" ? x : undefined;
}

/** Returns the value of `credentialsDigest`. It is a digest, so that a session that keeps the value keeps no secret. */
function credentialsOf(headers: Headers, certificate?: string): string {
  const proof = headers.get(PROOF);
  const key = proof === null ? null : (holderOf(proof) ?? "");
  const credentials = [headers.get("authorization"), headers.get("x-api-key"), key, certificate ?? null];
  return credentials.every((each) => each === null) ? "" : sha256Hex(JSON.stringify(credentials));
}

const MAX_PROOF_HEADER_BYTES = 4096;

function member(value: JsonValue | undefined, name: string): JsonValue | undefined {
  return isObject(value) && Object.hasOwn(value, name) ? (value[name] as JsonValue) : undefined;
}

/** Returns a signal that aborts when the response has ended, whether complete or not. */
function untilClosed(response: HttpResponse): AbortSignal {
  const controller = new AbortController();
  response.once("close", () => controller.abort(CLOSED));
  return controller.signal;
}

/** The reason with which the signals of all requests abort, because the stack trace of each new one costs time. */
const CLOSED = new DOMException("The response has ended.", "AbortError");

/** The media type of server-sent events. */
export const EVENT_STREAM = "text/event-stream";

/**
 * Whether an `Accept` header allows a media type. The most specific range that matches the type decides. (RFC 9110
 * section 12.5.1) A range for a format, such as `application/json`, also allows types based on it, such as
 * `application/schema+json`.
 *
 * @param accept undefined or empty for a client that accepts every type
 * @param type in lower case; parameters are ignored
 */
export function accepts(accept: string | undefined, type: string): boolean {
  if (accept === undefined || accept.trim() === "") return true;
  const qualities = new Map<string, number>();
  for (const range of accept.split(",")) {
    const [name = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
    const quality = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
    qualities.set(name, quality === undefined ? 1 : Number(quality));
  }
  for (const range of rangesOf(type.split(";", 1)[0]?.trim() ?? "")) {
    const quality = qualities.get(range);
    if (quality !== undefined) return quality > 0;
  }
  return false;
}

/** Returns the media ranges that match a type, the most specific first. */
function rangesOf(type: string): string[] {
  const [group = "", name = ""] = type.split("/", 2);
  const format = name.includes("+") ? [`${group}/${name.slice(name.lastIndexOf("+") + 1)}`] : [];
  return [type, ...format, `${group}/*`, "*/*"];
}
