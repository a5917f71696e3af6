import type { Clock } from "@depute/core";
import { type Store, type StoreLocation, type StoreSettings, storeSize } from "@depute/store";
import { DomainMetrics } from "./domain-metrics.ts";
import type { Registry } from "./metrics.ts";
import type { ReplicaTable } from "./replica-table.ts";

/** The metrics that each process has: its build, its open stores, and the replicas of all services. */
export class ProcessMetrics {
  /** Registers the metrics of DOMAIN_METRICS for the services of the process. */
  readonly domain: DomainMetrics;
  readonly #openStores = new Map<string, () => Promise<number>>();
  readonly #commits: (labels: { store: string }, seconds: number) => void;

  constructor(registry: Registry, clock: Clock) {
    this.domain = new DomainMetrics(registry, clock);
    this.#commits = this.domain.histogram("depute_store_commit_duration_seconds");
    this.domain.gauge("depute_store_size_bytes", () =>
      Promise.all([...this.#openStores].map(async ([store, size]) => [{ store }, await size()] as const)),
    );
  }

  /** @param version the version of Depute; empty if the program names none */
  start(version: string, replicas: Pick<ReplicaTable, "list">): void {
    this.domain.gauge("depute_build_info", async () => [[{ version, node_version: process.version }, 1]]);
    this.domain.gauge("depute_replicas", async () => {
      const counts = new Map<string, { service: string; status: string; count: number }>();
      for (const { service, status } of await replicas.list()) {
        const key = `${service} ${status}`;
        const counted = counts.get(key) ?? { service, status, count: 0 };
        counted.count += 1;
        counts.set(key, counted);
      }
      return [...counts.values()].map(({ service, status, count }) => [{ service, status }, count]);
    });
  }

  /** Returns the location of a store, with the listeners that measure the store. */
  measured<Location extends StoreLocation>(
    name: string,
    location: Location,
  ): Location & Pick<StoreSettings, "onOpen" | "onCommit"> {
    return {
      ...location,
      onOpen: (store: Pick<Store, "read">) => {
        this.#openStores.set(name, () => storeSize(location, store));
      },
      onCommit: (seconds) => this.#commits({ store: name }, seconds),
    };
  }
}
