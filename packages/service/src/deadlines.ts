import type { Interceptor } from "@connectrpc/connect";
import { type Clock, DeputeError, ErrorReason, type Timers } from "@depute/core";
import { linkSignals, untilAborted } from "./aborts.ts";
import { callEndKey } from "./call-end.ts";
import { deadlineKey } from "./call-values.ts";
import { type Manners, NO_MANNERS } from "./service-manners.ts";

export interface DeadlineOptions {
  /** Timeout of a unary call whose caller sets none, in milliseconds. */
  defaultMs: number;
  /**
   * Maximum timeout of a unary call, in milliseconds, even if its caller asks for more. A method's own timeout in
   * `manners` replaces this maximum and `defaultMs`.
   */
  maxMs: number;
  /** Differences of single services from the platform's rules, such as longer timeouts; absent if there are none. */
  manners?: Manners;
  clock: Clock;
  timers: Timers;
}

/**
 * Ends unary calls at their deadline, even if the handler ignores its signal. A stream has no deadline unless
 * the client sets one.
 */
export function deadlineInterceptor(options: DeadlineOptions): Interceptor {
  const { defaultMs, maxMs, manners = NO_MANNERS, clock, timers } = options;
  return (next) => async (request) => {
    const requestedMs = requestedTimeout(request.header);
    if (request.stream) {
      if (requestedMs !== undefined) request.contextValues.set(deadlineKey, clock.now() + requestedMs);
      return next(request);
    }
    const ownMs = manners.get(request.service.typeName)?.timeoutsMs?.[request.method.name];
    const limit = Math.min(requestedMs ?? ownMs ?? defaultMs, ownMs ?? maxMs);
    request.contextValues.set(deadlineKey, clock.now() + limit);
    const end = request.contextValues.get(callEndKey);
    if (end !== undefined) {
      // If `end` already enforces the timeout that the caller set, no second timer is needed.
      const cancel =
        end.timed && limit === requestedMs
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
  return new DeputeError(ErrorReason.DEADLINE_EXCEEDED, `the call did not end within ${limit} ms`);
}

const GRPC_UNIT_MS: Record<string, number> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 };

/**
 * Returns the timeout that the caller set, in milliseconds, from the header `connect-timeout-ms` or `grpc-timeout`;
 * undefined if the header is absent or malformed.
 */
export function requestedTimeout(header: Headers): number | undefined {
  const connect = header.get("connect-timeout-ms");
  if (connect !== null) return /^\d{1,10}$/.test(connect) ? Number(connect) : undefined;
  const grpc = header.get("grpc-timeout");
  if (grpc === null) return undefined;
  const match = /^(\d{1,8})([HMSmun])$/.exec(grpc);
  return match === null ? undefined : Math.ceil(Number(match[1]) * (GRPC_UNIT_MS[match[2] ?? ""] ?? 0));
}
