import type { CallOptions, HandlerContext } from "@connectrpc/connect";
import type { Clock, Owned } from "@depute/core";
import { beneficiaryOf, type CallOrigin, edgeOf, forwardEdge, type OriginSource } from "./call-origin.ts";
import { deadlineKey, requestIdKey } from "./call-values.ts";
import { callerKey, organizationOfCaller } from "./caller.ts";
import { PlainHeaders } from "./fast/plain-values.ts";
import { forwardCertificate, HOP } from "./hop-headers.ts";
import { REQUEST_ID_HEADER } from "./request-id.ts";

/** The headers that a process forwards to the next process. All other headers of the caller are dropped. */
const FORWARDED = ["authorization", "dpop", "x-api-key", "traceparent", "tracestate", REQUEST_ID_HEADER];

/** The method (`htm`) and the URL (`htu`) of a client's request, which a holder proof must name. */
export interface WireRequest {
  htm: string;
  htu: string;
  /** The client's address and protocol, for the audit log. */
  edge?: Pick<CallOrigin, "address" | "wire">;
}

/**
 * Returns the headers of an RPC that serves a request of another protocol.
 *
 * @param received the request's own headers
 * @param wire the method and the public address that the client used
 * @param spiffeId the SPIFFE id of the client's certificate; empty if the certificate has no SPIFFE id, absent if the
 *   client has no certificate
 */
export function forwardWireHeaders(
  received: Headers,
  wire: WireRequest,
  requestId: string,
  spiffeId?: string,
): Headers {
  const headers = PlainHeaders.toSend({});
  for (const name of FORWARDED) {
    const value = received.get(name);
    if (value !== null) headers.set(name, value);
  }
  headers.set(HOP.htm, wire.htm);
  headers.set(HOP.htu, wire.htu);
  headers.set(REQUEST_ID_HEADER, requestId);
  forwardCertificate(headers, spiffeId);
  if (wire.edge !== undefined) forwardEdge(headers, wire.edge);
  return headers;
}

type CallContext = Pick<HandlerContext, "requestHeader" | "values" | "signal">;

/**
 * Returns the headers of a call that a handler makes on behalf of its caller. They carry the caller's credentials,
 * address and protocol, and the id of the call.
 */
export function forwardHeaders(context: Pick<CallContext, "requestHeader" | "values">): Headers {
  const caller = context.values.get(callerKey);
  const wire = { htm: caller?.htm ?? "POST", htu: caller?.htu ?? "", edge: edgeOf(context) };
  const headers = forwardWireHeaders(
    context.requestHeader,
    wire,
    context.values.get(requestIdKey),
    caller?.spiffeId,
  );
  if (caller === undefined) {
    headers.delete(HOP.htm);
    headers.delete(HOP.htu);
  }
  return headers;
}

/**
 * Returns the options for a call on behalf of a handler's caller: the caller's headers, its cancellation and
 * its remaining time.
 */
export function forwardOptions(context: CallContext, clock: Clock): CallOptions {
  return timed(context, clock, () => forwardHeaders(context));
}

/**
 * Returns the options of a call that a service makes on its own behalf while it serves another call. The caller's
 * credentials are not passed on. The caller's organization owns the records that the call creates.
 */
export function ownOptions(context: CallContext, clock: Clock): CallOptions {
  return timed(context, clock, () => {
    const headers = ownHeaders(context.values.get(requestIdKey), organizationOfCaller(context));
    return withOrigin(headers, context);
  });
}

/**
 * Adds two facts to the headers of a service's own call: the client's address and protocol in the call that the service
 * serves, and the principal on whose behalf the service calls.
 */
function withOrigin(headers: Headers, context: OriginSource): Headers {
  forwardEdge(headers, edgeOf(context));
  const beneficiary = beneficiaryOf(context);
  if (beneficiary !== "") headers.set(HOP.onBehalfOf, encodeURIComponent(beneficiary));
  return headers;
}

/** Returns the options of a service's own call that creates records for the organization of an existing record. */
export function optionsForOwner(options: CallOptions, { organization }: Owned): CallOptions {
  const headers = PlainHeaders.copyOf(options.headers);
  headers.delete(HOP.organization);
  if (organization !== "") headers.set(HOP.organization, encodeURIComponent(organization));
  return { ...options, headers };
}

/**
 * Returns the headers of a call that a service makes on its own behalf.
 *
 * @param organization the organization that owns the records that the call creates; empty for none
 */
export function ownHeaders(requestId: string, organization = ""): Headers {
  const headers = PlainHeaders.toSend({ [HOP.origin]: "service" });
  if (requestId !== "") headers.set(REQUEST_ID_HEADER, requestId);
  if (organization !== "") headers.set(HOP.organization, encodeURIComponent(organization));
  return headers;
}

/** Creates call options whose members are getters, because most handlers make no further call and need no values. */
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
      // At least one millisecond, because a client reads zero as "no limit".
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
