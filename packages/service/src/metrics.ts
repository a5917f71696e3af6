import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

export { Registry };

/** What is counted about every RPC. */
export interface RpcMetrics {
  readonly requests: Counter<"service" | "method" | "code">;
  readonly duration: Histogram<"service" | "method">;
  readonly inFlight: Gauge<"service" | "method">;
}

// From a call within a process to one that waits for its deadline.
const DURATION_BUCKETS_S = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
];

/** A registry with the process's own figures (memory, event loop, garbage collection) in it. */
export function createMetrics(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return registry;
}

const perRegistry = new WeakMap<Registry, RpcMetrics>();

/** The RPC metrics of a registry; made at the first call. */
export function rpcMetrics(registry: Registry): RpcMetrics {
  const known = perRegistry.get(registry);
  if (known !== undefined) return known;
  const metrics: RpcMetrics = {
    requests: new Counter({
      name: "depute_rpc_requests_total",
      help: "RPCs that ended, by gRPC status code.",
      labelNames: ["service", "method", "code"],
      registers: [registry],
    }),
    duration: new Histogram({
      name: "depute_rpc_duration_seconds",
      help: "Time from an RPC's arrival to its end; for streams, to the last message.",
      labelNames: ["service", "method"],
      buckets: DURATION_BUCKETS_S,
      registers: [registry],
    }),
    inFlight: new Gauge({
      name: "depute_rpc_in_flight",
      help: "RPCs that have begun and not ended.",
      labelNames: ["service", "method"],
      registers: [registry],
    }),
  };
  perRegistry.set(registry, metrics);
  return metrics;
}
