import { randomUuid } from "@depute/core";
import { requestIdKey, type WithValues } from "./call-values.ts";

/**
 * The header for the id of a call, in requests and responses. The id is the same in the logs of every process that
 * serves the call.
 */
export const REQUEST_ID_HEADER = "depute-request-id";

// The form of a call's id that is accepted from a caller. Logs contain the id unchanged, so spaces, control characters
// and long texts are not accepted.
const SANE = /^[A-Za-z0-9._:-]{1,128}$/;

/** Returns the call's id that the caller sent in this header, if the id has the accepted form; else a new id. */
export function requestIdFrom(header: string | null | undefined): string {
  return header != null && SANE.test(header) ? header : randomUuid();
}

/** Returns the id of the call that a handler serves. Empty if `requestIdInterceptor` did not run. */
export function requestIdOf(context: WithValues): string {
  return context.values.get(requestIdKey);
}
