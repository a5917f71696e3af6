import { trace } from "@opentelemetry/api";
import { clientAddressKey, principalKey, requestIdKey, trustedKey, type WithValues } from "./call-values.ts";
import { type Caller, callerKey, organizationOfCaller } from "./caller.ts";
import { HOP } from "./hop-headers.ts";

/** The kinds of credentials of a call. */
export const CREDENTIAL_KINDS = [
  "none",
  "secret",
  "login_token",
  "certificate",
  "holder_proof",
  "delegation_token",
  "message",
  "service",
] as const;
export type CredentialKind = (typeof CREDENTIAL_KINDS)[number];

/** The circumstances of a call, for the audit log. A text is empty if it does not apply to the call. */
export interface CallOrigin {
  /** The principal of the caller, as the credentials or the tokens service prove it. */
  readonly caller: string;
  readonly organization: string;
  /** The kind of credentials; empty when they were not accepted. */
  readonly credential: CredentialKind | "";
  /** The network address of the client, without a port. */
  readonly address: string;
  /** The protocol of the client's request, e.g. `grpc`. */
  readonly wire: string;
  /** The principal on whose behalf a service makes the call; empty for a call of a client. */
  readonly onBehalfOf: string;
  readonly requestId: string;
  /** The trace of the call: 32 hexadecimal digits. (W3C Trace Context) */
  readonly traceId: string;
}

/** The circumstances of a call, and its method. */
export interface CurrentCall extends CallOrigin {
  /** The full name of the method, e.g. `depute.tokens.v1.TokenService/MintToken`. */
  readonly rpc: string;
}

/** The parts of a call from which its origin is read. */
export interface OriginSource extends WithValues {
  readonly requestHeader: Headers;
}

/** Maximum number of characters of each text of an origin. */
const MAX_TEXT = 256;

/**
 * Returns the circumstances of a call. Headers that Depute's processes add to calls between them are used only if the
 * call is trusted.
 */
export function originOf(call: OriginSource): CallOrigin {
  const { values, requestHeader: header } = call;
  const caller = values.get(callerKey);
  return {
    caller: cut(principalOf(call)),
    organization: caller === undefined ? "" : cut(organizationOfCaller(call)),
    credential: caller === undefined ? "" : credentialOf(caller, call),
    ...edgeOf(call),
    onBehalfOf: cut(hop(call, HOP.onBehalfOf)),
    requestId: values.get(requestIdKey),
    traceId: trace.getActiveSpan()?.spanContext().traceId ?? traceIn(header.get("traceparent")),
  };
}

/**
 * Returns the address and the protocol of the client at the edge of the platform. In a trusted call, both come from
 * headers that the calling process added.
 */
export function edgeOf(call: OriginSource): Pick<CallOrigin, "address" | "wire"> {
  const isPassed = call.values.get(trustedKey);
  return {
    address: isPassed ? cut(hop(call, HOP.address)) : call.values.get(clientAddressKey),
    wire: isPassed ? cut(hop(call, HOP.wire)) : protocolOf(call.requestHeader.get("content-type")),
  };
}

/** Sets the headers that pass the client's address and protocol to the next process. */
export function forwardEdge(headers: Headers, { address, wire }: Pick<CallOrigin, "address" | "wire">): void {
  if (address !== "") headers.set(HOP.address, encodeURIComponent(address));
  if (wire !== "") headers.set(HOP.wire, encodeURIComponent(wire));
}

/**
 * Returns the principal on whose behalf further calls are made while this call is served; empty before the principal is
 * proven.
 */
export function beneficiaryOf(call: OriginSource): string {
  return hop(call, HOP.onBehalfOf) || principalOf(call);
}

function principalOf({ values }: WithValues): string {
  return values.get(principalKey) || (values.get(callerKey)?.principal ?? "");
}

function credentialOf({ kind, token, spiffeId, isAttested }: Caller, call: OriginSource): CredentialKind {
  switch (kind) {
    case "local":
      return call.values.get(trustedKey) && call.requestHeader.get(HOP.origin) === "service"
        ? "service"
        : "none";
    case "credential":
      if (spiffeId !== undefined) return "certificate";
      return isAttested === true ? "login_token" : "secret";
    case "bound":
      return token === undefined ? "holder_proof" : "delegation_token";
    case "message":
      return "message";
  }
}

/** Returns the decoded value of a header that Depute's processes add; empty if the call is not trusted. */
function hop({ values, requestHeader }: OriginSource, name: string): string {
  if (!values.get(trustedKey)) return "";
  const value = requestHeader.get(name);
  if (value === null) return "";
  try {
    return decodeURIComponent(value);
  } catch {
    return "";
  }
}

function protocolOf(contentType: string | null): string {
  if (contentType?.startsWith("application/grpc-web")) return "grpc-web";
  return contentType?.startsWith("application/grpc") ? "grpc" : "connect";
}

function traceIn(traceparent: string | null): string {
  if (traceparent === null) return "";
  return /^[0-9a-f]{2}-([0-9a-f]{32})-/.exec(traceparent)?.[1] ?? "";
}

function cut(text: string): string {
  return (text.length > MAX_TEXT ? text.slice(0, MAX_TEXT) : text).toWellFormed();
}
