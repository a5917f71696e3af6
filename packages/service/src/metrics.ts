import type { DescMethod } from "@bufbuild/protobuf";
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

export { Registry };

/** What is counted about every RPC. */
export interface RpcMetrics {
  of(method: DescMethod): MethodTally;
}

/** The counts of one method. A call adds to plain numbers; Prometheus's form of them is made when it is asked for. */
export interface MethodTally {
  readonly service: string;
  readonly method: string;
  begin(): void;
  /** @param code gRPC's name of the status, e.g. `NOT_FOUND` */
  end(code: string, seconds: number): void;
}

/** From a call within a process to one that waits for its deadline. */
export const DURATION_BUCKETS_S = [
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
    of(method) {
      let counts = tallies.get(method);
      if (counts === undefined) {
        counts = tally(method);
        tallies.set(method, counts);
      }
      return counts;
    },
  };
}
