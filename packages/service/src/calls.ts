import {
  type CallOptions,
  Code,
  ConnectError,
  type ContextKey,
  createContextKey,
  type HandlerContext,
  type Interceptor,
} from "@connectrpc/connect";
import { type Clock, DeputeError, ErrorReason, type Owned, randomUuid, type Timers } from "@depute/core";
import { beneficiaryOf, type CallOrigin, edgeOf, forwardEdge, type OriginSource } from "./call-origin.ts";
import { deadlineKey, requestIdKey, type WithValues } from "./call-values.ts";
import { callerKey, forwardCertificate, HOP, organizationOfCaller } from "./caller.ts";
import { type Manners, NO_MANNERS } from "./service-manners.ts";

/**
 * Returns the error of a call that ended because `signal` aborted: the signal's reason if the reason is a DeputeError
 * or a ConnectError, otherwise CANCELED.
 */
export function abortError(signal: AbortSignal): Error {
  return abortErrorOf(signal.reason);
}

/** Returns the error that {@link abortError} returns for a signal with this reason. */
export function abortErrorOf(reason: unknown): Error {
  if (reason instanceof DeputeError || reason instanceof ConnectError) return reason;
  return new ConnectError("canceled", Code.Canceled);
}

/**
 * Settles as `promise` does, or rejects as soon as `signal` aborts. So a handler that never settles does not keep its
 * caller waiting.
 */
export function untilAborted<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  if (signal.aborted) {
    promise.catch(() => {});
    return Promise.reject(abortError(signal));
  }
  return new Promise<T>((resolve, reject) => {
    const onAbort = () => reject(abortError(signal));
    signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

/**
 * Yields the items of `source`. When `signal` aborts, throws {@link abortError}, and calls the source's `return`
 * without waiting for it.
 */
export function iterateUntilAborted<T>(signal: AbortSignal, source: AsyncIterable<T>): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]() {
      const iterator = source[Symbol.asyncIterator]();
      const stop = (value?: unknown) =>
        iterator.return?.(value) ?? Promise.resolve({ done: true as const, value });
      return {
        async next() {
          try {
            return await untilAborted(signal, iterator.next());
          } catch (error) {
            if (signal.aborted) stop().catch(() => {});
            throw error;
          }
        },
        return: stop,
      };
    },
  };
}

/**
 * Returns a signal that aborts as soon as one of `signals` does, with the same reason. `release` unlinks the signals.
 */
export function linkSignals(...signals: AbortSignal[]): {
  signal: AbortSignal;
  abort: (reason: unknown) => void;
  release: () => void;
} {
  const controller = new AbortController();
  const onAbort = (event: Event) => controller.abort((event.target as AbortSignal).reason);
  const release = () => {
    for (const signal of signals) signal.removeEventListener("abort", onAbort);
  };
  for (const signal of signals) {
    if (signal.aborted) controller.abort(signal.reason);
    else signal.addEventListener("abort", onAbort, { once: true });
  }
  controller.signal.addEventListener("abort", release, { once: true });
  return { signal: controller.signal, abort: (reason) => controller.abort(reason), release };
}

/**
 * Decides how one unary call ends: by its deadline, by its caller's cancel or by its response, whichever comes
 * first. One object for all three ends costs less than linked signals, above all for calls that end normally.
 */
export class CallEnd {
  /** Aborts when the call ends before it has a response. */
  readonly signal: AbortSignal;
  readonly #controller = new AbortController();
  /** Whether this object enforces the timeout that the caller set. */
  readonly timed: boolean = false;
  #settled = false;
  #waiting: ((reason: unknown) => void) | undefined;
  #cancelTimer: (() => void) | undefined;

  /** @param limit the milliseconds that the caller allows, and the timers that enforce them; absent for no limit */
  constructor(limit?: { readonly timeoutMs: number | undefined; readonly timers: Timers }) {
    this.signal = this.#controller.signal;
    if (limit?.timeoutMs === undefined) return;
    const { timeoutMs, timers } = limit;
    const expire = () => this.abort(new ConnectError("the operation timed out", Code.DeadlineExceeded));
    if (timeoutMs <= 0) expire();
    else this.#cancelTimer = timers.after(timeoutMs, expire);
    this.timed = true;
  }

  /** Ends the call with an error: the handler's signal aborts with this reason. */
  abort(reason: unknown): void {
    if (this.#settled) return;
    this.settle();
    this.#controller.abort(reason);
    this.#waiting?.(abortErrorOf(reason));
  }

  /** Ends the call with CANCELED, because its caller disconnected. No effect if the call already has a response. */
  leave(): void {
    if (!this.#settled) this.abort(new ConnectError("canceled", Code.Canceled));
  }

  /** Records that the call has its response. After this, nothing aborts the call. */
  settle(): void {
    this.#settled = true;
    this.#cancelTimer?.();
  }

  /**
   * Settles like `promise`, or rejects as soon as {@link abort} ends the call. Only one promise of a call may be raced
   * at a time.
   */
  race<T>(promise: Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      promise.then(resolve, reject);
      if (this.signal.aborted) reject(abortErrorOf(this.signal.reason));
      else this.#waiting = reject;
    });
  }
}

/**
 * The CallEnd by which the transport can end the call before its response. If the value is undefined, only the call's
 * signal can end the call.
 */
export const callEndKey: ContextKey<CallEnd | undefined> = createContextKey<CallEnd | undefined>(undefined, {
  description: "call end",
});

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
  const match = /^(\d{1,8})([HMSmun])$/.exec(header.get("grpc-timeout") ?? "");
  return match === null ? undefined : Math.ceil(Number(match[1]) * (GRPC_UNIT_MS[match[2] ?? ""] ?? 0));
}

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
  const headers = new Headers();
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
  const headers = new Headers(options.headers);
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
  const headers = new Headers({ [HOP.origin]: "service" });
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

/**
 * Runs `work` with a signal that aborts when `signal` does, or after `ms` milliseconds.
 *
 * @throws the errors of `work`, such as the reason with which the signal aborted
 */
export async function withTimeout<T>(
  timers: Timers,
  ms: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const link = linkSignals(signal);
  const cancel = timers.after(ms, () =>
    link.abort(new DOMException(`no answer within ${ms} ms`, "TimeoutError")),
  );
  try {
    return await work(link.signal);
  } finally {
    cancel();
    link.release();
  }
}
