import type { Bus } from "@depute/bus";
import type { Clock, Timers } from "@depute/core";
import { follow, type Logger } from "@depute/service";
import type { Store } from "@depute/store";
import type { RevocationState } from "./revocation-state.ts";
import { readPending, readRevocations } from "./store/revocation-rows.ts";

/** The bus's topic of the log; its wake-ups say nothing but "look". */
export const REVOCATIONS_TOPIC = "revocations";

const BATCH = 1000;

interface ReaderOptions {
  store: Store;
  bus: Bus;
  clock: Clock;
  timers: Timers;
  log: Logger;
  state: RevocationState;
  /** Milliseconds between looks when nothing wakes. */
  pollMs: number;
}

/** Keeps a RevocationState up with the log, whoever writes it. */
export class RevocationReader {
  readonly #options: ReaderOptions;
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;
  /** Up to which pending entry everything was read. */
  #position = 0;
  #failed = false;

  constructor(options: ReaderOptions) {
    this.#options = options;
  }

  /** Reads all that is recorded, and then follows. Throws what the store throws when it cannot be read at first. */
  async start(): Promise<void> {
    await this.look();
    this.#running = this.#follow();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  /** Reads what is new. Throws when the log cannot be read or has a gap; that was no look, and what is known ages. */
  async look(): Promise<void> {
    const { store, clock, state } = this.#options;
    const began = clock.now();
    for (let isMore = true; isMore; ) {
      const [logged, pending] = await store.read(async (tx) => [
        await readRevocations(tx, state.sequence, BATCH),
        await readPending(tx, this.#position, BATCH),
      ]);
      for (const { sequence, entry } of logged) {
        if (sequence > state.sequence + 1) {
          throw new Error(`the revocation log goes from ${state.sequence} to ${sequence}`);
        }
        state.add(sequence, entry.revocationId);
      }
      for (const { position, entry } of pending) {
        state.addPending(entry);
        this.#position = position;
      }
      isMore = logged.length === BATCH || pending.length === BATCH;
    }
    state.looked(began);
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
    // It gives nothing: reading is what it is for.
    for await (const _ of looks);
  }
}
