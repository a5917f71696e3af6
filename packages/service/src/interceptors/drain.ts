import type { Interceptor, StreamRequest, StreamResponse } from "@connectrpc/connect";
import { DeputeError, ErrorReason } from "@depute/core";
import { iterateUntilAborted, linkSignals, untilAborted } from "../abort.ts";
import type { Next } from "./outcome.ts";

/** What a stream is told when this process goes away. */
export function shuttingDown(): DeputeError {
  return new DeputeError(ErrorReason.SHUTTING_DOWN, "this process is shutting down; call again");
}

/**
 * Ends streams when the process drains, so that their readers attach again elsewhere, and when their caller has gone.
 *
 * Unary calls are left alone: they are short, and their callers want the answer.
 */
export function drainInterceptor(stopping: AbortSignal): Interceptor {
  return (next) => (request) => (request.stream ? untilStopped(stopping, next, request) : next(request));
}

async function untilStopped(
  stopping: AbortSignal,
  next: Next,
  request: StreamRequest,
): Promise<StreamResponse> {
  if (stopping.aborted) throw shuttingDown();
  const link = linkSignals(request.signal);
  const onStop = () => link.abort(shuttingDown());
  stopping.addEventListener("abort", onStop, { once: true });
  // A finished call aborts its signal, so this is also what happens after a stream's normal end.
  link.signal.addEventListener("abort", () => stopping.removeEventListener("abort", onStop), {
    once: true,
  });
  const answer = next({ ...request, signal: link.signal }) as Promise<StreamResponse>;
  const response = await untilAborted(link.signal, answer);
  return { ...response, message: iterateUntilAborted(link.signal, response.message) };
}
