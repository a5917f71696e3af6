import type { Interceptor } from "@connectrpc/connect";
import { type Clock, DeputeError, ErrorReason, type Timers } from "@depute/core";
import { linkSignals, untilAborted } from "../abort.ts";
import { callEndKey, deadlineKey } from "../call-values.ts";

export interface DeadlineOptions {
  /** Milliseconds that a unary call has when its caller names no limit. */
  defaultMs: number;
  /** The most milliseconds that a unary call has, whatever its caller asks for. */
  maxMs: number;
  clock: Clock;
  timers: Timers;
}

/**
 * Ends unary calls at their deadline, also when the handler does not listen to its signal.
 *
 * Streams live as long as their readers want, unless the reader names a limit.
 */
export function deadlineInterceptor({ defaultMs, maxMs, clock, timers }: DeadlineOptions): Interceptor {
  return (next) => async (request) => {
    const asked = requestedTimeout(request.header);
    if (request.stream) {
      if (asked !== undefined) request.contextValues.set(deadlineKey, clock.now() + asked);
      return next(request);
    }
    const limit = Math.min(asked ?? defaultMs, maxMs);
    request.contextValues.set(deadlineKey, clock.now() + limit);
    const end = request.contextValues.get(callEndKey);
    if (end !== undefined) {
      // What the caller allows is seen to already.
      const cancel =
        end.timed && limit === asked
          ? undefined
          : timers.after(limit, () => end.abort(deadlineExceeded(limit)));
      try {
        return await end.race(next(request));
      } finally {
        cancel?.();
        end.settle();
      }
    }
    const link = linkSignals(request.signal);
    const cancel = timers.after(limit, () => link.abort(deadlineExceeded(limit)));
    try {
      return await untilAborted(link.signal, next({ ...request, signal: link.signal }));
    } finally {
      cancel();
      link.release();
    }
  };
}

function deadlineExceeded(limit: number): DeputeError {
  return new DeputeError(ErrorReason.DEADLINE_EXCEEDED, `the call was not done within ${limit} ms`);
}

const GRPC_UNIT_MS: Record<string, number> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 };

/** Milliseconds that the caller allows (`connect-timeout-ms`, `grpc-timeout`); undefined when it says nothing sane. */
export function requestedTimeout(header: Headers): number | undefined {
  const connect = header.get("connect-timeout-ms");
  if (connect !== null) return /^\d{1,10}$/.test(connect) ? Number(connect) : undefined;
  const match = /^(\d{1,8})([HMSmun])$/.exec(header.get("grpc-timeout") ?? "");
  return match === null ? undefined : Math.ceil(Number(match[1]) * (GRPC_UNIT_MS[match[2] ?? ""] ?? 0));
}
