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
/** Number of renewals in the duration of one lease. */
const RENEWALS = 5;
/** Minimum milliseconds between two checks for leases that may have expired. */
const MIN_CHECK_MS = 10;

/**
 * SQL for the database's time in epoch milliseconds. The clocks of the processes may differ, so no process's clock
 * counts.
 */
const NOW = "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)";
const LEASE_ROW = row({ name: text, epoch: integer });
const OTHERS_ROW = row({ name: text, remaining_ms: integer });

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
  /** Called when `close` has released leases, so that other processes can call {@link Leases.check} at once. */
  readonly onReleased?: () => void;
}

/**
 * Named leases of a schema that processes share. A process that renews a lease in time keeps the lease. The lease of a
 * process that has ended expires after `leaseMs`, and another process takes it. A process without a lease reads the
 * table only when a lease may have expired. Each change of the holder raises the lease's epoch. If a store is not shared, its process holds every lease forever, and no statement runs.
 */
export class Leases {
  readonly #options: LeasesOptions;
  readonly #isShared: boolean;
  readonly #leaseMs: number;
  readonly #holder = Buffer.from(randomBytes(12)).toString("hex");
  readonly #leases = new Map<string, NamedLease>();
  /** Cancels the next run; undefined before the first `compete`. */
  #cancel: (() => void) | undefined;
  #running: Promise<void> | undefined;
  /** Whether another run must follow the active one at once. */
  #isCheckDue = false;
  #isClosed = false;

  constructor(options: LeasesOptions) {
    this.#options = options;
    this.#isShared = options.store.sharing !== undefined;
    this.#leaseMs = options.leaseMs ?? LEASE_MS;
  }

  /** Starts to compete for a lease. Calls with the same name return the same lease. */
  compete(name: string): Lease {
    if (!this.#isShared) return ALWAYS;
    const knownLease = this.#leases.get(name);
    if (knownLease !== undefined) return knownLease;
    const lease = new NamedLease(name, this.#holder, this.#options.clock);
    this.#leases.set(name, lease);
    this.#checkSoon();
    return lease;
  }

  /** Checks at once whether leases are free. Call this method when another process may have released its leases. */
  check(): void {
    if (this.#leases.size > 0) this.#checkSoon();
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
    const { store, onError, onReleased } = this.#options;
    try {
      await store.write((tx) =>
        tx.run("UPDATE store_leases SET expire_ms = 0 WHERE holder = ?", [this.#holder]),
      );
      onReleased?.();
    } catch (error) {
      onError(error, "leases could not be released");
    }
  }

  #checkSoon(): void {
    if (this.#running !== undefined) this.#isCheckDue = true;
    else this.#runAfter(0);
  }

  #runAfter(ms: number): void {
    this.#cancel?.();
    if (!this.#isClosed) this.#cancel = this.#options.timers.after(ms, () => this.#run());
  }

  #run(): void {
    const renewalMs = this.#leaseMs / RENEWALS;
    this.#isCheckDue = false;
    this.#running = this.#takeAll()
      .catch((error: unknown) => {
        this.#options.onError(error, "leases could not be renewed; trying again");
        return renewalMs;
      })
      .then((waitMs) => {
        this.#running = undefined;
        this.#runAfter(this.#isCheckDue ? 0 : waitMs);
      });
  }

  /**
   * Renews the leases that this process holds, and takes leases that are free or have expired.
   *
   * @returns how long to wait before the next run, in milliseconds
   */
  async #takeAll(): Promise<number> {
    const { store, clock } = this.#options;
    const names = [...this.#leases.keys()];
    if (!names.some((name) => this.#leases.get(name)?.isHeld)) {
      const remainingMs = await store.read((tx) => this.#remaining(tx, names));
      if (remainingMs > 0) return Math.max(MIN_CHECK_MS, Math.min(remainingMs, this.#leaseMs));
    }
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
    return this.#leaseMs / RENEWALS;
  }

  /**
   * Returns the milliseconds until the first of these leases expires at its holder; 0 if this process may take one now.
   * Marks the leases that another process holds as lost. Only reads the table, so that no other process waits.
   */
  async #remaining(tx: ReadTx, names: readonly string[]): Promise<number> {
    const others = await tx.all(
      OTHERS_ROW,
      `SELECT name, expire_ms - ${NOW} AS remaining_ms FROM store_leases
       WHERE holder <> ? AND expire_ms > ${NOW}`,
      [this.#holder],
    );
    const remainingByName = new Map(others.map((other) => [other.name, other.remaining_ms]));
    for (const name of remainingByName.keys()) this.#leases.get(name)?.lose();
    return Math.min(...names.map((name) => remainingByName.get(name) ?? 0));
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
