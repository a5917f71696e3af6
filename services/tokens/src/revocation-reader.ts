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

/** The bus topic that reports new entries of the log. Readers ignore the messages' content. */
export const REVOCATIONS_TOPIC = "revocations";

const BATCH = 1000;

/** Reads the revocations that a transaction sees and this process lacks, in three steps. */
export interface CurrentRevocations {
  /** Begins, before the transaction. Returns the time in epoch milliseconds. */
  begin(): number;
  /** Whether this process has read all revocations, and all changes of root keys, that the transaction sees. */
  isCurrent(tx: ReadTx): Promise<boolean>;
  /** Ends, after the transaction: reads the missing revocations, unless `isCurrent` was true. */
  settle(began: number, isCurrent: boolean): Promise<void>;
}

/** Thrown in a transaction that sees revocations which this process has not read. */
class BehindError extends Error {}

/** Maximum number of runs of a function that decides by the revocations. */
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
   * Whether other processes append to the log. If so, decisions first compare this process's sequence with the store.
   * Default false.
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
  /** The position of the last pending entry that this process has read. */
  #position = 0;
  #failed = false;
  /** The running read for `settle`, and the next read. All calls during a read wait for the same next read. */
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
   * Reads new entries. Throws when the log cannot be read or has a gap. Without complete reads, the state becomes too
   * old, and the service refuses decisions. If the log became shorter or different, the service refuses every later
   * decision.
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
        this.#markConflict(`place ${knownHead.sequence} is not what it was`);
      let last = knownHead;
      for (const place of places) {
        if (place.sequence > last.sequence + 1) {
          throw new Error(`the revocation log goes from ${last.sequence} to ${place.sequence}`);
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
      // All rows up to the last open one are now read, or need no read. A row that opens again has a new position.
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
      // A conflict already denies every token, so the caller needs no error.
      if (!state.isConflicting) throw error;
    }
  }

  /**
   * Requires that this process has read all revocations that a transaction sees. A process without replicas always has.
   * Call this method within `decide`.
   */
  async assertCurrent(tx: ReadTx): Promise<void> {
    if (this.#options.isShared === true && !(await this.isCurrent(tx))) throw new BehindError();
  }

  /**
   * Runs a function whose transaction decides by the revocations. If `assertCurrent` throws because revocations are
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

  /** Reads the revocations that other replicas have recorded. Undefined without replicas. */
  catchUp(): Promise<void> | undefined {
    return this.#options.isShared === true ? this.#catchUp() : undefined;
  }

  async #catchUp(): Promise<void> {
    const began = this.begin();
    await this.settle(began, await this.#options.store.read((tx) => this.isCurrent(tx)));
  }

  /**
   * With replicas, reads again if the last read is older than the poll interval. A process that was suspended therefore
   * decides by the present revocations.
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
   * Drops the pending revocations that another replica has logged or removed. Reads their log entries first, so that no
   * revocation is out of force in between.
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

  /** Reads new entries. All calls during a running read share the next one. */
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
      this.#markConflict(`place ${sequence} is not sealed`);
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
    // The iterator yields no values. The loop only drives its reads.
    for await (const _ of looks);
  }
}

/** Returns the key of a pending entry. Principals have a fixed length, so the concatenation is unambiguous. */
function nameOf({ revocationId, revokedBy }: { revocationId: string; revokedBy: string }): string {
  return revokedBy + revocationId;
}
