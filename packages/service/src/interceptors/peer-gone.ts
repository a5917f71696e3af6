import { ConnectError } from "@connectrpc/connect";
import { isTransportFailure } from "@depute/core";
import { reasonOf } from "../errors-on-wire.ts";

/**
 * Whether a call failed because its peer or the connection died.
 *
 * @param signal the signal of the call, which aborts when the caller cancels or the deadline passes; then the result is
 * false
 */
export function isPeerGone(thrown: unknown, signal: AbortSignal): boolean {
  if (!(thrown instanceof ConnectError) || signal.aborted || reasonOf(thrown) !== undefined) return false;
  return isTransportFailure(thrown);
}
