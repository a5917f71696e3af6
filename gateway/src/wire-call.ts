import type { CallOptions, HandlerContext } from "@connectrpc/connect";
import type { Clock } from "@depute/core";
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

/** One request of a wire, as the calls to services that it leads to need it. */
export interface WireCall {
  /**
   * Options of the one call that decides: the caller's credentials go with it. A holder proof counts once (RFC 9449), so
   * a request makes one call with these.
   */
  readonly asCaller: CallOptions;
  /** Options of the look-ups beside it: the caller's credentials too, unless they would be used up by them. */
  readonly aside: CallOptions;
  /** Aborts when the client has left. */
  readonly signal: AbortSignal;
  readonly requestId: string;
  /** The last event that the client saw of the stream that it takes up again (`Last-Event-ID`). */
  readonly lastEventId?: string;
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
    signal,
    requestId,
    ...(lastEventId === null ? {} : { lastEventId }),
  };
}

/** The call of an RPC that a wire serves. */
export function rpcCall(context: HandlerContext, clock: Clock): WireCall {
  const asCaller = forwardOptions(context, clock);
  return {
    asCaller,
    aside: context.requestHeader.has(PROOF) ? ownOptions(context, clock) : asCaller,
    signal: context.signal,
    requestId: requestIdOf(context),
  };
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
