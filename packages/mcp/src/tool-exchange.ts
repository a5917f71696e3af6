import type { AuthInfo } from "@modelcontextprotocol/server";

/** The key under which the SDK stores the request's context. */
const CALL = "depute.dev/call";

/** A request. `refusal` is the HTTP response that replaces the SDK's response if the tool refuses the call. */
export interface Exchange<Call> {
  readonly call: Call;
  refusal?: Response;
  /** The HTTP status of the request's error; absent for status 200. */
  status?: number;
}

/** Attaches an exchange to a request, so that the SDK passes the exchange to the request's handler. */
export function attached(exchange: Exchange<unknown>): { authInfo: AuthInfo } {
  return { authInfo: { token: "", clientId: "", scopes: [], extra: { [CALL]: exchange } } };
}

/** Returns the exchange that `attached` added to a request. */
export function exchangeOf<Call>(authInfo: AuthInfo | undefined): Exchange<Call> {
  return authInfo?.extra?.[CALL] as Exchange<Call>;
}
