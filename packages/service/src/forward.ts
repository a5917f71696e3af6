import type { CallOptions, HandlerContext } from "@connectrpc/connect";
import type { Clock } from "@depute/core";
import { deadlineKey, requestIdKey } from "./call-values.ts";
import { callerKey, HOP } from "./caller.ts";
import { REQUEST_ID_HEADER } from "./request-id.ts";

/** What a hop tells the next process about the call it serves; everything else of a caller's headers stays behind. */
const FORWARDED = ["authorization", "dpop", "x-api-key", "traceparent", "tracestate", REQUEST_ID_HEADER];

/** The wire's request as far as a holder proof names it. */
export interface WireRequest {
  htm: string;
  htu: string;
}

/**
 * The headers of a call made on behalf of a request that came over a wire other than RPC.
 *
 * @param received the request's own headers
 * @param wire the method and the public address that the client used
 */
export function forwardWireHeaders(received: Headers, wire: WireRequest, requestId: string): Headers {
  const headers = new Headers();
  for (const name of FORWARDED) {
    const value = received.get(name);
    if (value !== null) headers.set(name, value);
  }
  headers.set(HOP.htm, wire.htm);
  headers.set(HOP.htu, wire.htu);
  headers.set(REQUEST_ID_HEADER, requestId);
  return headers;
}

type CallContext = Pick<HandlerContext, "requestHeader" | "values" | "signal">;

/** The headers of a call that a handler makes on behalf of its caller: the same credentials, request id and address. */
export function forwardHeaders(context: Pick<CallContext, "requestHeader" | "values">): Headers {
  const caller = context.values.get(callerKey);
  const wire = { htm: caller?.htm ?? "POST", htu: caller?.htu ?? "" };
  const headers = forwardWireHeaders(context.requestHeader, wire, context.values.get(requestIdKey));
  if (caller === undefined) {
    headers.delete(HOP.htm);
    headers.delete(HOP.htu);
  }
  return headers;
}

/** Everything that a call on behalf of a handler's caller takes along: headers, cancellation, the rest of its time. */
export function forwardOptions(context: CallContext, clock: Clock): CallOptions {
  return timed(context, clock, () => forwardHeaders(context));
}

/** A service's own call, made while it serves another one: its caller's credentials stay behind. */
export function ownOptions(context: CallContext, clock: Clock): CallOptions {
  return timed(context, clock, () => ownHeaders(context.values.get(requestIdKey)));
}

/** The headers of a call that a service makes for itself. */
export function ownHeaders(requestId: string): Headers {
  const headers = new Headers({ [HOP.origin]: "service" });
  if (requestId !== "") headers.set(REQUEST_ID_HEADER, requestId);
  return headers;
}

/** Found out when a call is made: most handlers have these at hand for calls that they then need not make. */
function timed(context: CallContext, clock: Clock, headers: () => Headers): CallOptions {
  const options: ReadTimed = {
    get headers() {
      return headers();
    },
    get signal() {
      return context.signal;
    },
    get timeoutMs() {
      const deadline = context.values.get(deadlineKey);
      // Zero would mean "no limit" to a client, so a deadline that has passed leaves a millisecond.
      return deadline === undefined ? undefined : Math.max(1, deadline - clock.now());
    },
  };
  return options as CallOptions;
}

interface ReadTimed {
  readonly headers: Headers;
  readonly signal: AbortSignal;
  readonly timeoutMs: number | undefined;
}
