import { randomUUID } from "node:crypto";
import { requestIdKey, type WithValues } from "./call-values.ts";

/** Header of requests and responses; the same id names the call in the logs of every process that it passes. */
export const REQUEST_ID_HEADER = "depute-request-id";

// It is written to logs as it stands: no spaces, no control characters, no megabytes.
const SANE = /^[A-Za-z0-9._:-]{1,128}$/;

/** The caller's own id for a call if it can be used, else a new one. */
export function requestIdFrom(header: string | null | undefined): string {
  return header != null && SANE.test(header) ? header : randomUUID();
}

/** The id of the call that a handler answers; empty outside of the kit's interceptors. */
export function requestIdOf(context: WithValues): string {
  return context.values.get(requestIdKey);
}
