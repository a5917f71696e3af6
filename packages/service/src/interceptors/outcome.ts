import type { DescMethod } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ContextValues,
  type Interceptor,
  type StreamRequest,
  type UnaryRequest,
} from "@connectrpc/connect";
import { type Clock, ErrorReason, reasonName } from "@depute/core";
import { Counter, Gauge, Histogram } from "prom-client";
import { principalKey, requestIdKey } from "../call-values.ts";
import { callerKey } from "../caller.ts";
import { reasonOf } from "../errors-on-wire.ts";
import type { Logger } from "../log.ts";
import { DURATION_BUCKETS_S, type Registry } from "../metrics.ts";

export type Next = Parameters<Interceptor>[0];
export type Request = UnaryRequest | StreamRequest;
type Response = Awaited<ReturnType<Next>>;

/** Functions that observe one call, which may have one response or a stream of responses. */
export interface CallHooks {
  /** Runs each step of the call, for example in an async context. If absent, the steps run directly. */
  run?<T>(step: () => Promise<T>): Promise<T>;
  /** Replaces an exception before it is thrown again. */
  mapError?(thrown: unknown): unknown;
  /**
   * Called once at the end of the call. The argument is the exception that `mapError` returned; CANCELED if the reader
   * of a stream left; undefined if the call succeeded.
   */
  end?(thrown: unknown): void;
}

/**
 * Calls `next` under the hooks. A stream counts as ended when its last message was read, when the stream
 * failed, or when its reader left.
 */
export async function withHooks(next: Next, request: Request, hooks: CallHooks): Promise<Response> {
  let response: Response;
  try {
    response = await (hooks.run === undefined ? next(request) : hooks.run(() => next(request)));
  } catch (thrown) {
    throw failed(hooks, thrown);
  }
  if (response.stream) return { ...response, message: hooked(response.message, hooks) };
  hooks.end?.(undefined);
  return response;
}

/** Maps an exception, reports the end of the call to the hooks, and returns the exception to throw. */
function failed(hooks: CallHooks, thrown: unknown): unknown {
  const mapped = hooks.mapError === undefined ? thrown : hooks.mapError(thrown);
  hooks.end?.(mapped);
  return mapped;
}

function hooked<T>(source: AsyncIterable<T>, hooks: CallHooks): AsyncIterable<T> {
  let ended = false;
  const end = (thrown?: unknown) => {
    if (ended) return;
    ended = true;
    hooks.end?.(thrown);
  };
  const fail = (thrown: unknown) => {
    const mapped = hooks.mapError === undefined ? thrown : hooks.mapError(thrown);
    end(mapped);
    return mapped;
  };
  return {
    [Symbol.asyncIterator]() {
      const iterator = source[Symbol.asyncIterator]();
      const step = () => iterator.next();
      return {
        async next() {
          try {
            const item = await (hooks.run === undefined ? step() : hooks.run(step));
            if (item.done === true) end();
            return item;
          } catch (thrown) {
            throw fail(thrown);
          }
        },
        async return(value?: unknown) {
          end(new ConnectError("canceled", Code.Canceled));
          return (await iterator.return?.(value)) ?? { done: true, value };
        },
      };
    },
  };
}

/**
 * Counts and logs every call. Level debug: served calls, calls that the caller cancelled, and calls that a drain ended.
 * Level info: refused calls. Level error: internal faults, with their cause.
 */
export function observeInterceptor(log: Logger, registry: Registry, clock: Clock): Interceptor {
  const metrics = rpcMetrics(registry);
  return (next) => (request) => {
    const tally = metrics.tallyOf(request.method);
    const begin = clock.monotonic();
    tally.begin();
    return withHooks(next, request, {
      end(thrown) {
        const seconds = (clock.monotonic() - begin) / 1000;
        const code = codeName(thrown);
        tally.end(code, seconds);
        const cause = causeOf(thrown);
        const level = levelOf(thrown, cause);
        if (!log.isLevelEnabled(level)) return;
        const fields: Record<string, unknown> = {
          rpc: `${tally.service}/${tally.method}`,
          code,
          ms: Math.round(seconds * 100_000) / 100,
          request_id: request.contextValues.get(requestIdKey),
          caller: callerIn(request.contextValues),
        };
        const reason = thrown === undefined ? undefined : reasonOf(thrown);
        if (reason !== undefined) fields.reason = reasonName(reason);
        if (level === "error") fields.err = cause;
        else if (thrown instanceof ConnectError) fields.refusal = thrown.rawMessage;
        log[level](fields, "rpc");
      },
    });
  };
}

/**
 * Returns the caller's principal; the text `unproven` before a token or a holder proof is verified; empty for a caller
 * of kind `message`; undefined without a caller.
 */
function callerIn(values: ContextValues): string | undefined {
  const caller = values.get(callerKey);
  if (caller?.kind !== "bound") return caller?.principal;
  return values.get(principalKey) || "unproven";
}

function levelOf(thrown: unknown, cause: unknown): "debug" | "info" | "error" {
  if (thrown === undefined) return "debug";
  const code = thrown instanceof ConnectError ? thrown.code : Code.Unknown;
  if (code === Code.Canceled || reasonOf(thrown) === ErrorReason.SHUTTING_DOWN) return "debug";
  // The cause is an error that another service returned with a reason. That service has already logged its own fault.
  if (cause instanceof ConnectError && reasonOf(cause) !== undefined) return "info";
  return code === Code.Internal || code === Code.Unknown || code === Code.DataLoss ? "error" : "info";
}

/** Returns gRPC's own spelling of a status, e.g. `NOT_FOUND`. */
function codeName(thrown: unknown): string {
  if (thrown === undefined) return "OK";
  const code = thrown instanceof ConnectError ? thrown.code : Code.Unknown;
  const name = Code[code] ?? "Unknown";
  return name === "Canceled" ? "CANCELLED" : name.replace(/(?<=.)([A-Z])/g, "_$1").toUpperCase();
}

/**
 * Returns the original cause of an error, following at most three `cause` links. If another service answered with a
 * reason, that service's error is the cause.
 */
function causeOf(thrown: unknown): unknown {
  let cause = thrown;
  for (let depth = 0; depth < 3 && cause instanceof Error && cause.cause !== undefined; depth++) {
    cause = cause.cause;
    if (cause instanceof ConnectError && reasonOf(cause) !== undefined) break;
  }
  return cause;
}

/** The metrics of every RPC. */
export interface RpcMetrics {
  tallyOf(method: DescMethod): MethodTally;
}

/**
 * Counts the calls of one method. A call only increments plain numbers, which a scrape converts to Prometheus's form.
 */
export interface MethodTally {
  readonly service: string;
  readonly method: string;
  begin(): void;
  /** @param code gRPC's name of the status, e.g. `NOT_FOUND` */
  end(code: string, seconds: number): void;
}

const perRegistry = new WeakMap<Registry, RpcMetrics>();

/** Returns the RPC metrics of a registry. Creates the metrics if the registry has none. */
export function rpcMetrics(registry: Registry): RpcMetrics {
  let metrics = perRegistry.get(registry);
  if (metrics === undefined) {
    metrics = registerRpcMetrics(registry);
    perRegistry.set(registry, metrics);
  }
  return metrics;
}

interface Counts extends MethodTally {
  inFlight: number;
  readonly ended: Map<string, number>;
}

function registerRpcMetrics(registry: Registry): RpcMetrics {
  const tallies = new Map<DescMethod, Counts>();
  const registers = [registry];
  new Counter({
    name: "depute_rpc_requests_total",
    help: "RPCs that ended, by gRPC status code.",
    labelNames: ["service", "method", "code"],
    registers,
    collect() {
      this.reset();
      for (const { service, method, ended } of tallies.values()) {
        for (const [code, count] of ended) this.inc({ service, method, code }, count);
      }
    },
  });
  const duration = new Histogram({
    name: "depute_rpc_duration_seconds",
    help: "Time from an RPC's arrival to its end; for streams, to the last message.",
    labelNames: ["service", "method"],
    buckets: DURATION_BUCKETS_S,
    registers,
  });
  new Gauge({
    name: "depute_rpc_in_flight",
    help: "RPCs that have begun and not ended.",
    labelNames: ["service", "method"],
    registers,
    collect() {
      for (const { service, method, inFlight } of tallies.values()) this.set({ service, method }, inFlight);
    },
  });

  const tally = (desc: DescMethod): Counts => {
    const labels = { service: desc.parent.typeName, method: desc.name };
    const observed = duration.labels(labels);
    const ended = new Map<string, number>();
    return {
      ...labels,
      inFlight: 0,
      ended,
      begin() {
        this.inFlight++;
      },
      end(code, seconds) {
        this.inFlight--;
        ended.set(code, (ended.get(code) ?? 0) + 1);
        observed.observe(seconds);
      },
    };
  };
  return {
    tallyOf(method) {
      let counts = tallies.get(method);
      if (counts === undefined) {
        counts = tally(method);
        tallies.set(method, counts);
      }
      return counts;
    },
  };
}
