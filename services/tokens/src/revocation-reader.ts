import type { Bus } from "@depute/bus";
import type { Clock, Timers } from "@depute/core";
import type { CryptoEngine } from "@depute/dct";
import { follow, type Logger } from "@depute/service";
import type { ReadTx, Store } from "@depute/store";
import type { RevocationState, RevokedKey } from "./revocation-state.ts";
import type { RootKeys } from "./root-keys.ts";
import { contentDigest, isContinued, nextHead } from "./rules/checkpoint.ts";
import { keptBefore } from "./rules/key-revocation.ts";
import { blocksSignedBefore } from "./store/block-rows.ts";
import { lastPosition, readPending } from "./store/pending-rows.ts";
import { headAt, type LogPlace, lastOfAll, readLog } from "./store/revocation-rows.ts";

/**
 * The bus topic for wake-ups about new revocations, including pending ones, and about changes of root keys. Readers
 * ignore the key of a wake-up.
 */
export const REVOCATIONS_TOPIC = "revocations";

const BATCH = 1000;

/**
 * Reads the revocations that a transaction sees but this process has not read. The three methods are the three steps.
 */
export interface CurrentRevocations {
  /** The step before the transaction. Returns the current time in epoch milliseconds. */
  begin(): number;
  /** Whether this process has read all revocations, and all changes of root keys, that the transaction sees. */
  isCurrent(tx: ReadTx): Promise<boolean>;
  /**
   * The step after the transaction: reads the missing revocations, unless `isCurrent` was true.
   * @param began the result of `begin`
   */
  settle(began: number, isCurrent: boolean): Promise<void>;
}

/** Thrown in a transaction that sees revocations which this process has not read. */
class BehindError extends Error {}

/** Maximum number of attempts in one call of `decide` or `refresh`. */
const MAX_RUNS = 5;

interface ReaderOptions {
  engine: CryptoEngine;
  store: Store;
  bus: Bus;
  clock: Clock;
  timers: Timers;
  log: Logger;
  state: RevocationState;
  /** The root keys, which the reader keeps up to date too. */
  roots: Pick<RootKeys, "change" | "readChanged" | "apply">;
  /** Milliseconds between reads of the log if no wake-up arrives. */
  pollMs: number;
  /**
   * Whether other processes append to the log. If so, each decision first compares this process's sequence with the
   * store. The default is false.
   */
  isShared?: boolean;
  /** Called when this process has read entries that it did not append, or root keys that it did not change. */
  onAdvance?: () => void;
}

/**
 * Keeps a RevocationState up to date with the log in the store, which several processes may write. Keeps the root keys up
 * to date too.
 */
export class RevocationReader implements CurrentRevocations {
  readonly #options: ReaderOptions;
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;
  /** The position of the newest pending row that this process has read. */
  #position = 0;
  #failed = false;
  /** The running read of `#lookShared`, and the read after it. All calls during a read share the read after it. */
  #looking: Promise<void> | undefined;
  #nextLook: Promise<void> | undefined;

  constructor(options: ReaderOptions) {
    this.#options = options;
  }

  /** Reads all revocations, and then follows the log. Throws the store's error if the first read fails. */
  async start(): Promise<void> {
    await this.look();
    this.#running = this.#follow();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  /**
   * Reads new entries. Throws when the log cannot be read, has a gap, or has become shorter or different. After the log
   * has become shorter or different, the service refuses every decision. If no read completes for too long, the service
   * refuses decisions.
   */
  async look(): Promise<void> {
    const { store, clock, state } = this.#options;
    const began = clock.now();
    for (let isMore = true; isMore; ) {
      const knownHead = { sequence: state.sequence, head: state.head };
      const { places, keys, pending, lastPending, headThen, rootKeys } = await store.read((tx) =>
        this.#read(tx, knownHead.sequence),
      );
      if (this.#options.roots.apply(rootKeys)) this.#options.onAdvance?.();
      if (!isContinued(knownHead, headThen))
        this.#markConflict(`entry ${knownHead.sequence} of the revocation log has changed`);
      let last = knownHead;
      for (const place of places) {
        if (place.sequence > last.sequence + 1) {
          throw new Error(
            `the revocation log has a gap between the entries ${last.sequence} and ${place.sequence}`,
          );
        }
        this.#assertSealed(place, last.head);
        const key = keys.get(place.sequence);
        if (key !== undefined) state.addKey(place, key);
        else if (place.entry !== undefined) state.add(place, place.entry.revocationId);
        else state.addPruned(place);
        last = place;
      }
      for (const one of pending) {
        if ("entry" in one) state.addPending(one.entry);
        else state.addPendingKey(one.statement.key);
        this.#position = Math.max(this.#position, one.position);
      }
      // After fewer than BATCH rows, this process has read all pending rows up to `lastPending`. A row that becomes
      // pending again gets a new position.
      if (pending.length < BATCH) this.#position = Math.max(this.#position, lastPending);
      if (places.length > 0) this.#options.onAdvance?.();
      isMore = places.length === BATCH || pending.length === BATCH;
    }
    state.markRead(began);
  }

  async #read(tx: ReadTx, after: number) {
    const places = await readLog(tx, after, BATCH);
    const keys = new Map<number, RevokedKey>();
    for (const { sequence, key } of places) {
      if (key === undefined) continue;
      const keepBefore = keptBefore(key) ?? 0;
      keys.set(sequence, {
        key: key.key,
        keepBefore,
        keptBlocks: await blocksSignedBefore(tx, key.key, keepBefore),
      });
    }
    const pending = await readPending(tx, this.#position, this.#options.clock.now(), BATCH);
    const rootKeys = await this.#options.roots.readChanged(tx);
    const [lastPending, headThen] = [await lastPosition(tx), await headAt(tx, after)];
    return { places, keys, pending, lastPending, headThen, rootKeys };
  }

  begin(): number {
    return this.#options.clock.now();
  }

  async isCurrent(tx: ReadTx): Promise<boolean> {
    const { state, roots } = this.#options;
    const { sequence, position, rootChange } = await lastOfAll(tx);
    return sequence === state.sequence && position <= this.#position && rootChange <= roots.change;
  }

  async settle(began: number, isCurrent: boolean): Promise<void> {
    const { state } = this.#options;
    if (isCurrent) return state.markRead(began);
    try {
      await this.#lookShared();
    } catch (error) {
      // A conflicting state already denies every token, so no error is needed.
      if (!state.isConflicting) throw error;
    }
  }

  /**
   * Requires that this process has read all revocations that a transaction sees. In a process without replicas, this is
   * always true. Call this method within `decide`.
   */
  async assertCurrent(tx: ReadTx): Promise<void> {
    if (this.#options.isShared === true && !(await this.isCurrent(tx))) throw new BehindError();
  }

  /**
   * Runs a function that calls `assertCurrent` in its transaction. If `assertCurrent` throws because revocations are
   * missing, reads them and runs the function again.
   */
  async decide<T>(run: () => Promise<T>): Promise<T> {
    for (let remainingRuns = MAX_RUNS; ; remainingRuns--) {
      try {
        return await run();
      } catch (error) {
        if (!(error instanceof BehindError) || remainingRuns === 1) throw error;
      }
      await this.#lookShared();
    }
  }

  /** Reads the revocations that other replicas have recorded. Returns undefined without replicas. */
  catchUp(): Promise<void> | undefined {
    return this.#options.isShared === true ? this.#catchUp() : undefined;
  }

  async #catchUp(): Promise<void> {
    const began = this.begin();
    await this.settle(began, await this.#options.store.read((tx) => this.isCurrent(tx)));
  }

  /**
   * With replicas, reads again if the last read is older than the poll interval. So a process that was suspended does
   * not decide by old revocations.
   *
   * @returns whether the revocations are now recent; undefined if no read was needed
   */
  refresh(): Promise<boolean> | undefined {
    const { isShared, state, clock, pollMs } = this.#options;
    return isShared === true && state.age(clock.now()) > pollMs ? this.#refresh() : undefined;
  }

  async #refresh(): Promise<boolean> {
    const { state, clock, pollMs } = this.#options;
    for (let remainingRuns = MAX_RUNS; remainingRuns > 0; remainingRuns--) {
      await this.#lookShared().catch(() => {});
      if (state.age(clock.now()) <= pollMs) return true;
    }
    return false;
  }

  /**
   * Drops the pending revocations that another replica has logged or removed. Reads the new log entries first, so that
   * each logged revocation stays in force.
   */
  async dropSettled(): Promise<void> {
    const { store, clock, state } = this.#options;
    const entries = state.pending();
    const keys = state.pendingKeys();
    if (entries.length + keys.length === 0) return;
    const isOpen = new Set<string>();
    for (let after = 0, isMore = true; isMore; ) {
      const open = await store.read((tx) => readPending(tx, after, clock.now(), BATCH));
      for (const one of open) {
        isOpen.add("entry" in one ? nameOf(one.entry) : one.statement.key);
        after = one.position;
      }
      isMore = open.length === BATCH;
    }
    await this.look();
    for (const entry of entries) if (!isOpen.has(nameOf(entry))) state.dropPending(entry, entry.added);
    for (const { key, added } of keys) if (!isOpen.has(key)) state.dropPendingKey(key, added);
  }

  /** Reads new entries. All calls during a running read share the read after it. */
  #lookShared(): Promise<void> {
    this.#nextLook ??= (this.#looking ?? Promise.resolve())
      .catch(() => {})
      .then(() => {
        this.#nextLook = undefined;
        this.#looking = this.look();
        return this.#looking;
      });
    return this.#nextLook;
  }

  #assertSealed({ sequence, entry, key, digest, head }: LogPlace, before: string): void {
    const { engine } = this.#options;
    const content = entry !== undefined ? { entry } : key !== undefined ? { key } : undefined;
    const entryDigest = content === undefined ? digest : contentDigest(engine, sequence, content);
    if (entryDigest !== digest || nextHead(engine, before, entryDigest) !== head)
      this.#markConflict(`entry ${sequence} of the revocation log does not match the hash chain`);
  }

  #markConflict(why: string): never {
    const { state, log } = this.#options;
    if (!state.isConflicting)
      log.error({ why }, "the revocation log is shorter or was changed; every token is denied");
    state.markConflict();
    throw new Error(`revocation_state_conflict: ${why}`);
  }

  async #follow(): Promise<void> {
    const { bus, timers, pollMs, log } = this.#options;
    const looks = follow<never, number>({
      read: async () => {
        await this.look().then(
          () => {
            this.#failed = false;
          },
          (err: unknown) => {
            if (!this.#failed) log.error({ err }, "the revocation log cannot be read; trying again");
            this.#failed = true;
          },
        );
        return [];
      },
      position: () => 0,
      after: 0,
      wake: (listener) => bus.subscribe(REVOCATIONS_TOPIC, listener),
      pollMs,
      timers,
      signal: this.#stop.signal,
    });
    // `looks` yields no values. The loop only runs the generator.
    for await (const _ of looks);
  }
}

/**
 * Returns a text that identifies a pending entry. Principals have a fixed length, so the concatenation is unambiguous.
 */
function nameOf({ revocationId, revokedBy }: { revocationId: string; revokedBy: string }): string {
  return revokedBy + revocationId;
}
