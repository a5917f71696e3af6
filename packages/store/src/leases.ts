import { type Clock, randomBytes, type Timers } from "@depute/core";
import { FOUND, integer, row, text } from "./row.ts";
import type { ReadTx, Store, WriteTx } from "./store.ts";

/** The table of the leases in a Postgres schema. */
export const LEASE_TABLE = `
CREATE TABLE IF NOT EXISTS store_leases (
  name TEXT COLLATE "C" PRIMARY KEY,
  holder TEXT COLLATE "C" NOT NULL,
  epoch BIGINT NOT NULL,
  expire_ms BIGINT NOT NULL -- milliseconds since the Unix epoch, by the database's clock
)`;

/** A lease expires this many milliseconds after its last renewal. */
const LEASE_MS = 2_000;
/** Number of renewals, and of checks for expired leases, in the duration of one lease. */
const RENEWALS = 5;

/**
 * SQL for the database's time in epoch milliseconds. The clocks of the processes may differ, so no process's clock
 * counts.
 */
const NOW = "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)";
const LEASE_ROW = row({ name: text, epoch: integer });
const NAME_ROW = row({ name: text });

/** Thrown when another process has taken a lease. The work of the lease belongs to that process. */
export class LeaseLostError extends Error {
  override readonly name = "LeaseLostError";
}

/** The right of one process at a time to do some work. */
export interface Lease {
  /** Whether this process holds the lease. Check this member before each step of the work. */
  readonly isHeld: boolean;
  /**
   * The epoch of the lease: 1 for its first holder, raised by each change of the holder; 0 before this process first
   * holds the lease. Read the epoch when a step of the work begins, and pass it to `requireHeld`.
   */
  readonly epoch: number;
  /**
   * Requires that no other process has taken the lease. Call this method in each transaction that records an effect of
   * the work. The transaction then fails if another process has taken the lease and this process has not noticed.
   *
   * @param epoch the value of {@link Lease.epoch} when the step began
   * @throws LeaseLostError
   */
  requireHeld(tx: ReadTx, epoch: number): Promise<void>;
  /** Registers a listener, which runs when this process takes the lease. */
  onTaken(listener: () => void): void;
  /**
   * Registers a listener, which runs when this process learns that another process has taken the lease, and at `close`.
   */
  onLost(listener: () => void): void;
}

export interface LeasesOptions {
  readonly store: Store;
  readonly clock: Pick<Clock, "monotonic">;
  readonly timers: Timers;
  readonly onError: (error: unknown, message: string) => void;
  /** A lease expires this many milliseconds after its last renewal. Default 2 000. */
  readonly leaseMs?: number;
}

/**
 * Named leases of a schema that processes share. A process that renews a lease in time keeps the lease. The lease of a
 * process that has ended expires after `leaseMs`, and another process takes it. Each change of the holder raises the
 * lease's epoch. If a store is not shared, its process holds every lease forever, and no statement runs.
 */
export class Leases {
  readonly #options: LeasesOptions;
  readonly #isShared: boolean;
  readonly #leaseMs: number;
  readonly #holder = Buffer.from(randomBytes(12)).toString("hex");
  readonly #leases = new Map<string, NamedLease>();
  #cancel: (() => void) | undefined;
  #running: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(options: LeasesOptions) {
    this.#options = options;
    this.#isShared = options.store.sharing !== undefined;
    this.#leaseMs = options.leaseMs ?? LEASE_MS;
  }

  /** Starts to compete for a lease. Calls with the same name return the same lease. */
  compete(name: string): Lease {
    if (!this.#isShared) return ALWAYS;
    const lease = this.#leases.get(name) ?? new NamedLease(name, this.#holder, this.#options.clock);
    this.#leases.set(name, lease);
    this.#cancel ??= this.#options.timers.after(0, () => this.#renew());
    return lease;
  }

  /** The names of the leases that this process holds. Empty if the store is not shared. */
  get held(): readonly string[] {
    return [...this.#leases].filter(([, lease]) => lease.isHeld).map(([name]) => name);
  }

  /** Releases all leases, so that other processes can take the leases at once. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#cancel?.();
    await this.#running;
    const held = [...this.#leases.values()].filter((lease) => lease.isHeld);
    for (const lease of held) lease.lose();
    if (held.length === 0) return;
    await this.#options.store
      .write((tx) => tx.run("UPDATE store_leases SET expire_ms = 0 WHERE holder = ?", [this.#holder]))
      .catch((error: unknown) => this.#options.onError(error, "leases could not be released"));
  }

  #renew(): void {
    const { timers, onError } = this.#options;
    this.#running = this.#takeAll()
      .catch((error: unknown) => onError(error, "leases could not be renewed; trying again"))
      .then(() => {
        if (!this.#isClosed) this.#cancel = timers.after(this.#leaseMs / RENEWALS, () => this.#renew());
      });
  }

  /** Renews the leases that this process holds, and takes leases that are free or have expired. */
  async #takeAll(): Promise<void> {
    const { store, clock } = this.#options;
    const names = await store.read((tx) => this.#worth(tx));
    if (names.length === 0) return;
    let sentMs = 0;
    const taken = await store.write(
      (tx) => {
        sentMs = clock.monotonic();
        return take(tx, names, this.#holder, this.#leaseMs);
      },
      { isRepeatable: true },
    );
    for (const name of names) {
      const row = taken.find((one) => one.name === name);
      if (row === undefined) this.#leases.get(name)?.lose();
      else this.#leases.get(name)?.hold(row.epoch, sentMs + this.#leaseMs);
    }
  }

  /**
   * Returns the names of leases that this process may renew or take, and marks the leases that another process holds as
   * lost. Only reads the table, so that no other process waits.
   */
  async #worth(tx: ReadTx): Promise<string[]> {
    const names = [...this.#leases.keys()];
    const others = await tx.all(
      NAME_ROW,
      `SELECT name FROM store_leases WHERE holder <> ? AND expire_ms > ${NOW}`,
      [this.#holder],
    );
    const taken = new Set(others.map(({ name }) => name));
    for (const name of taken) this.#leases.get(name)?.lose();
    return names.filter((name) => !taken.has(name));
  }
}

function take(tx: WriteTx, names: readonly string[], holder: string, leaseMs: number) {
  const rows = names.map(() => `(?, ?, 1, ${NOW} + ?)`).join(", ");
  return tx.all(
    LEASE_ROW,
    `INSERT INTO store_leases AS before (name, holder, epoch, expire_ms) VALUES ${rows}
     ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expire_ms = excluded.expire_ms,
       epoch = before.epoch + CASE WHEN before.holder = excluded.holder THEN 0 ELSE 1 END
     WHERE before.holder = excluded.holder OR before.expire_ms <= ${NOW}
     RETURNING name, epoch`,
    names.flatMap((name) => [name, holder, leaseMs]),
  );
}

/** The lease of a store that only one process uses. */
const ALWAYS: Lease = {
  isHeld: true,
  epoch: 1,
  requireHeld: async () => {},
  onTaken: () => {},
  onLost: () => {},
};

class NamedLease implements Lease {
  readonly #name: string;
  readonly #holder: string;
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #taken: (() => void)[] = [];
  readonly #lost: (() => void)[] = [];
  #epoch = 0;
  /** Until this time on the process's monotonic clock, in milliseconds, this process holds the lease. */
  #untilMs = Number.NEGATIVE_INFINITY;

  constructor(name: string, holder: string, clock: Pick<Clock, "monotonic">) {
    this.#name = name;
    this.#holder = holder;
    this.#clock = clock;
  }

  get isHeld(): boolean {
    return this.#clock.monotonic() < this.#untilMs;
  }

  get epoch(): number {
    return this.#epoch;
  }

  async requireHeld(tx: ReadTx, epoch: number): Promise<void> {
    const found = await tx.get(
      FOUND,
      "SELECT 1 FROM store_leases WHERE name = ? AND holder = ? AND epoch = ?",
      [this.#name, this.#holder, epoch],
    );
    if (found === undefined) throw new LeaseLostError(`another process has taken the lease ${this.#name}`);
  }

  onTaken(listener: () => void): void {
    this.#taken.push(listener);
  }

  onLost(listener: () => void): void {
    this.#lost.push(listener);
  }

  hold(epoch: number, untilMs: number): void {
    const isNew = !this.isHeld || epoch !== this.#epoch;
    this.#epoch = epoch;
    this.#untilMs = untilMs;
    if (isNew) for (const listener of this.#taken) listener();
  }

  lose(): void {
    if (this.#untilMs === Number.NEGATIVE_INFINITY) return;
    this.#untilMs = Number.NEGATIVE_INFINITY;
    for (const listener of this.#lost) listener();
  }
}
