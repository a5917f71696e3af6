import type { Clock } from "@depute/core";
import { Counter, Gauge, Histogram, type Registry } from "./metrics.ts";

/** The definition of a metric: its kind, its description, and its labels with their values. */
export interface MetricEntry {
  readonly kind: "counter" | "gauge" | "histogram";
  /** The help text in the exposition format: a sentence with the unit. */
  readonly help: string;
  /** The name of each label, with a description of the label's values. */
  readonly labels: Readonly<Record<string, string>>;
  /** The service that has the metric; `every` for a metric of each process. */
  readonly owner: "tasks" | "tokens" | "verifier" | "every";
}

const STATES = "the states of a task (`TaskStatus`)";

/**
 * The metrics of the platform's work, such as the number of queued tasks. The table is their only definition: services
 * register them by name, and docs/metrics.md lists them. Names and units follow OpenTelemetry's rules in their
 * Prometheus form. No label contains the name of a principal or of an organization.
 */
export const DOMAIN_METRICS = {
  depute_tasks_queued: {
    kind: "gauge",
    help: "Tasks that wait for a worker.",
    labels: { agent_class: "`DEPUTE_METRICS_AGENT_CLASSES`, and `other`" },
    owner: "tasks",
  },
  depute_tasks_queue_age_seconds: {
    kind: "gauge",
    help: "Age in seconds of the oldest task that waits for a worker.",
    labels: { agent_class: "as above" },
    owner: "tasks",
  },
  depute_tasks_open: {
    kind: "gauge",
    help: "Tasks that have not ended, by state.",
    labels: { state: STATES },
    owner: "tasks",
  },
  depute_tasks_ended_total: {
    kind: "counter",
    help: "Tasks that ended in this process, by their final state.",
    labels: { state: STATES },
    owner: "tasks",
  },
  depute_task_leases_lost_total: {
    kind: "counter",
    help: "Attempts whose worker lost its lease.",
    labels: {},
    owner: "tasks",
  },
  depute_task_retries_total: {
    kind: "counter",
    help: "Attempts that failed and returned their task to the queue.",
    labels: {},
    owner: "tasks",
  },
  depute_revocations: {
    kind: "gauge",
    help: "The sequence of the newest revocation that this process applies.",
    labels: {},
    owner: "tokens",
  },
  depute_revocations_staleness_seconds: {
    kind: "gauge",
    help: "Seconds since this process last knew all revocations.",
    labels: {},
    owner: "tokens",
  },
  depute_denials_total: {
    kind: "counter",
    help: "Denials of tokens and proofs, by reason.",
    labels: { reason: "the reasons of docs/tokens.md, at most 64, and `other`" },
    owner: "tokens",
  },
  depute_spend_held_microcents: {
    kind: "gauge",
    help: "Microcents of reservations that are neither settled nor expired.",
    labels: {},
    owner: "tokens",
  },
  depute_spend_reserved_microcents_total: {
    kind: "counter",
    help: "Microcents that reservations of this process took from budgets.",
    labels: {},
    owner: "tokens",
  },
  depute_spend_charged_microcents_total: {
    kind: "counter",
    help: "Microcents that settled reservations charged in this process.",
    labels: {},
    owner: "tokens",
  },
  depute_reviews_open: {
    kind: "gauge",
    help: "Reviews that wait for a decision.",
    labels: {},
    owner: "verifier",
  },
  depute_checks_total: {
    kind: "counter",
    help: "Outputs that this process checked against a contract, by verdict.",
    labels: { verdict: "`passed`, `failed`" },
    owner: "verifier",
  },
  depute_log_entries: {
    kind: "gauge",
    help: "Entries of the transparency log.",
    labels: {},
    owner: "verifier",
  },
  depute_quota_refusals_total: {
    kind: "counter",
    help: "Calls and items of batches that a quota refused, by the name of the quota.",
    labels: {
      limit: "the quotas of docs/operations.md, with `principal_` or `organization_` before the name",
    },
    owner: "every",
  },
  depute_verification_cpu_seconds_total: {
    kind: "counter",
    help: "Seconds of the processor that this process counted against quotas of verification.",
    labels: {},
    owner: "every",
  },
  depute_store_size_bytes: {
    kind: "gauge",
    help: "Size in bytes of a store: the SQLite file with its write-ahead log, or the tables of the Postgres schema.",
    labels: { store: "the names of the stores" },
    owner: "every",
  },
  depute_store_commit_duration_seconds: {
    kind: "histogram",
    help: "Seconds from the begin of a group of writes until it is durable.",
    labels: { store: "the names of the stores" },
    owner: "every",
  },
  depute_replicas: {
    kind: "gauge",
    help: "Processes that run a service, as they reported last.",
    labels: { service: "the services", status: "`serving`, `not serving`, `lost`" },
    owner: "every",
  },
  depute_build_info: {
    kind: "gauge",
    help: "1, with the version of Depute and of Node.js.",
    labels: { version: "the version of Depute", node_version: "the version of Node.js" },
    owner: "every",
  },
} as const satisfies Readonly<Record<string, MetricEntry>>;

type Table = typeof DOMAIN_METRICS;
type NameOf<Kind extends MetricEntry["kind"]> = {
  [Name in keyof Table]: Table[Name]["kind"] extends Kind ? Name : never;
}[keyof Table];
type Labels<Name extends keyof Table> = Readonly<Record<keyof Table[Name]["labels"], string>>;

/** One value of a gauge, with its labels. */
export type Reading<Name extends NameOf<"gauge">> = readonly [labels: Labels<Name>, value: number];

/** Milliseconds for which a gauge caches the values that it read from a store. */
const KEPT_MS = 10_000;
/** Bounds in seconds of the histogram of commits, from a commit in memory to a commit on a slow disk. */
const COMMIT_BUCKETS_S = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];

/** Registers the metrics of {@link DOMAIN_METRICS} in the registry of a process. */
export class DomainMetrics {
  readonly #registry: Registry;
  readonly #clock: Clock;

  constructor(registry: Registry, clock: Clock) {
    this.#registry = registry;
    this.#clock = clock;
  }

  /** Registers a counter, unless it is registered. Returns the function that adds to the counter, by default 1. */
  counter<Name extends NameOf<"counter">>(name: Name): (labels: Labels<Name>, by?: number) => void {
    const counter = this.#known(name) ?? new Counter(this.#options(name));
    return (labels, by = 1) => (counter as Counter).inc({ ...labels }, by);
  }

  /** Registers a histogram of seconds. Returns the function that observes a duration. */
  histogram<Name extends NameOf<"histogram">>(name: Name): (labels: Labels<Name>, seconds: number) => void {
    const histogram =
      this.#known(name) ?? new Histogram({ ...this.#options(name), buckets: COMMIT_BUCKETS_S });
    return (labels, seconds) => (histogram as Histogram).observe({ ...labels }, seconds);
  }

  /**
   * Registers a gauge whose values are read when metrics are collected, at most once in KEPT_MS. A failed read leaves
   * the gauge without values, so that a lost store does not hide the other metrics.
   */
  gauge<Name extends NameOf<"gauge">>(name: Name, read: () => Promise<readonly Reading<Name>[]>): void {
    const clock = this.#clock;
    let readMs = Number.NEGATIVE_INFINITY;
    let kept: Promise<readonly Reading<Name>[]> = Promise.resolve([]);
    new Gauge({
      ...this.#options(name),
      async collect() {
        if (clock.monotonic() - readMs >= KEPT_MS) {
          readMs = clock.monotonic();
          kept = read().catch(() => []);
        }
        const readings = await kept;
        this.reset();
        for (const [labels, value] of readings) this.set({ ...labels } as Record<string, string>, value);
      },
    });
  }

  #known(name: string): unknown {
    return this.#registry.getSingleMetric(name);
  }

  #options(name: keyof Table) {
    const { help, labels } = DOMAIN_METRICS[name];
    return { name, help, labelNames: Object.keys(labels), registers: [this.#registry] };
  }
}
