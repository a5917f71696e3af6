import { type Clock, randomUuid, type Timers } from "@depute/core";
import { integer, type Migration, oneOf, openStore, row, type Store, text } from "@depute/store";
import type { CommonSettings } from "./common-settings.ts";
import type { Logger } from "./log.ts";
import { storeAt } from "./store-place.ts";

/** Milliseconds between two reports of a replica's state to the table. */
const REPORT_INTERVAL_MS = 2_000;
/** A replica counts as lost this many milliseconds after its last report. */
const LOST_MS = 10_000;
/** The table forgets a lost replica this many milliseconds after its last report. */
const FORGET_MS = 3_600_000;
/** Maximum number of replicas in a list. */
const MAX_LISTED = 1_000;

/** The table of the replicas, in the schema `PREFIX_cluster`. */
export const REPLICA_MIGRATIONS: readonly Migration[] = [
  {
    id: 1,
    name: "replicas",
    sql: `CREATE TABLE replicas (
  id TEXT PRIMARY KEY,
  service TEXT NOT NULL,
  address TEXT NOT NULL,
  version TEXT NOT NULL,
  serving INTEGER NOT NULL, -- 1: the replica takes calls
  leases TEXT NOT NULL, -- the names of the leases that it holds, as a JSON array
  start_ms BIGINT NOT NULL, -- by the clock of the replica
  report_ms BIGINT NOT NULL -- by the clock of the database
)`,
  },
  {
    id: 2,
    name: "features of replicas",
    // A version that does not know the column reports no features.
    sql: "ALTER TABLE replicas ADD COLUMN features TEXT NOT NULL DEFAULT '[]' -- a JSON array of names",
  },
];

/** The time of the database in epoch milliseconds, because the clocks of the replicas may differ. */
const NOW = "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)";

const REPLICA = row({
  id: text,
  service: text,
  address: text,
  version: text,
  serving: oneOf(0, 1),
  leases: text,
  features: text,
  start_ms: integer,
  report_ms: integer,
  now_ms: integer,
});

export type ReplicaStatus = "serving" | "not serving" | "lost";

/** One process that runs a service, according to its last report. */
export interface ReportedReplica {
  readonly id: string;
  readonly service: string;
  readonly address: string;
  readonly version: string;
  readonly status: ReplicaStatus;
  /** The names of the leases that the replica held. */
  readonly leases: readonly string[];
  /** The features of the replica that other replicas may have to know; see {@link ReplicaSource}. */
  readonly features: readonly string[];
  /** The times of the replica's start and of its last report, in milliseconds since the Unix epoch. */
  readonly startMs: number;
  readonly reportMs: number;
}

/** The data that a service of this process reports. */
export interface ReplicaSource {
  readonly service: string;
  readonly address: string;
  readonly isServing: () => boolean;
  readonly leases: () => readonly string[];
  /** Names of features that all replicas of the service must have before one of them uses it; none when absent. */
  readonly features?: readonly string[];
}

interface Member extends ReplicaSource {
  readonly id: string;
  readonly startMs: number;
}

export interface ReplicaTableOptions {
  readonly version: string;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Logger;
}

/**
 * The replicas of all services that share a database. Each process reports its services. Operators read the reports. A
 * service reads them before it begins to use a feature that all its replicas must have. A process without DEPUTE_REPLICATED lists only its own services.
 */
export class ReplicaTable {
  readonly #options: ReplicaTableOptions;
  readonly #store: Store | undefined;
  readonly #members: Member[] = [];
  #cancel: (() => void) | undefined;
  #reporting: Promise<void> = Promise.resolve();
  #isClosed = false;

  private constructor(options: ReplicaTableOptions, store: Store | undefined) {
    this.#options = options;
    this.#store = store;
  }

  /** Opens the table. @throws the errors of `openStore` */
  static async open(common: CommonSettings, options: ReplicaTableOptions): Promise<ReplicaTable> {
    if (!common.replicated) return new ReplicaTable(options, undefined);
    const { clock, timers, log } = options;
    const store = await openStore({
      ...{ ...storeAt(common, "cluster"), isShared: true, migrations: REPLICA_MIGRATIONS, clock, timers },
      onError: (err, message) => log.error({ err }, message),
    });
    return new ReplicaTable(options, store);
  }

  /** Adds a service of this process, and begins to report on it. */
  join(source: ReplicaSource): void {
    const { clock, timers } = this.#options;
    this.#members.push({ ...source, id: randomUuid(), startMs: clock.now() });
    if (this.#store !== undefined) this.#cancel ??= timers.after(0, () => this.#reportAndWait());
  }

  /**
   * Returns at most MAX_LISTED replicas, sorted by service and address. If services have no replicas, returns the
   * services of this process in the order in which they joined.
   *
   * @throws the errors of `Store.read`
   */
  async list(): Promise<readonly ReportedReplica[]> {
    if (this.#store === undefined) return this.#members.map((member) => this.#own(member));
    const rows = await this.#store.read((tx) =>
      tx.all(
        REPLICA,
        `SELECT id, service, address, version, serving, leases, features, start_ms, report_ms, ${NOW} AS now_ms FROM replicas
         ORDER BY service, address, start_ms LIMIT ${MAX_LISTED}`,
      ),
    );
    return rows.map(({ serving, start_ms: startMs, report_ms: reportMs, now_ms: nowMs, ...rest }) => {
      const status = nowMs - reportMs > LOST_MS ? "lost" : serving === 1 ? "serving" : "not serving";
      const [leases, features] = [rest.leases, rest.features].map((names) => JSON.parse(names) as string[]);
      return { ...rest, status, leases: leases ?? [], features: features ?? [], startMs, reportMs };
    });
  }

  /** Removes this process's services from the table. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#cancel?.();
    await this.#reporting;
    await this.#store
      ?.write(async (tx) => {
        for (const { id } of this.#members) await tx.run("DELETE FROM replicas WHERE id = ?", [id]);
      })
      .catch((err: unknown) => this.#warn(err));
    await this.#store?.close();
  }

  #own({ id, service, address, isServing, leases, features = [], startMs }: Member): ReportedReplica {
    const { version, clock } = this.#options;
    const status = isServing() ? "serving" : "not serving";
    const described = { id, service, address, version, status, features } as const;
    return { ...described, leases: leases(), startMs, reportMs: clock.now() };
  }

  #reportAndWait(): void {
    this.#reporting = this.#report()
      .catch((err: unknown) => this.#warn(err))
      .then(() => {
        if (this.#isClosed) return;
        this.#cancel = this.#options.timers.after(REPORT_INTERVAL_MS, () => this.#reportAndWait());
      });
  }

  async #report(): Promise<void> {
    await this.#store?.write(async (tx) => {
      for (const member of this.#members) {
        const { id, service, address, version, status, features, startMs, ...own } = this.#own(member);
        const leases = JSON.stringify(own.leases);
        await tx.run(
          `INSERT INTO replicas (id, service, address, version, serving, leases, features, start_ms, report_ms)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ${NOW}) ON CONFLICT (id)
           DO UPDATE SET serving = excluded.serving, leases = excluded.leases, report_ms = excluded.report_ms`,
          [
            ...[id, service, address, version, status === "serving" ? 1 : 0, leases],
            ...[JSON.stringify(features), startMs],
          ],
        );
      }
      await tx.run(`DELETE FROM replicas WHERE report_ms < ${NOW} - ${FORGET_MS}`);
    });
  }

  #warn(err: unknown): void {
    this.#options.log.debug({ err }, "the replica could not report; trying again");
  }
}
