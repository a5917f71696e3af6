import type { Bus } from "@depute/bus";
import type { Clock, Timers } from "@depute/core";
import type { CryptoEngine } from "@depute/dct";
import { follow, type Logger } from "@depute/service";
import type { ReadTx, Store } from "@depute/store";
import type { RevocationState, RevokedKey } from "./revocation-state.ts";
import { contentDigest, isContinued, nextHead } from "./rules/checkpoint.ts";
import { keptBefore } from "./rules/key-revocation.ts";
import { blocksSignedBefore } from "./store/block-rows.ts";
import { readPending } from "./store/pending-rows.ts";
import { headAt, type LogPlace, readLog } from "./store/revocation-rows.ts";

/** The bus topic that reports new entries of the log. Its messages have no content. */
export const REVOCATIONS_TOPIC = "revocations";

const BATCH = 1000;

interface ReaderOptions {
  engine: CryptoEngine;
  store: Store;
  bus: Bus;
  clock: Clock;
  timers: Timers;
  log: Logger;
  state: RevocationState;
  /** Milliseconds between reads of the log if no wake-up arrives. */
  pollMs: number;
}

/** Keeps a RevocationState up to date with the log in the store, which several processes may write. */
export class RevocationReader {
  readonly #options: ReaderOptions;
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;
  /** The position of the last pending entry that was read. */
  #position = 0;
  #failed = false;

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
   * Reads new entries. Throws when the log cannot be read or has a gap. Without a complete read, the state becomes
   * stale, and decisions stop. If the log became shorter or different, every later decision is refused.
   */
  async look(): Promise<void> {
    const { store, clock, state } = this.#options;
    const began = clock.now();
    for (let isMore = true; isMore; ) {
      const knownHead = { sequence: state.sequence, head: state.head };
      const { places, keys, pending, headThen } = await store.read((tx) =>
        this.#read(tx, knownHead.sequence),
      );
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
        this.#position = one.position;
      }
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
    return { places, keys, pending, headThen: await headAt(tx, after) };
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
    // The iterator yields no values. The loop only runs its reads.
    for await (const _ of looks);
  }
}
