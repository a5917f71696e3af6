import type { Timers } from "@depute/core";
import { type Logger, ownHeaders } from "@depute/service";
import type { Dependencies } from "./dependencies.ts";
import type { Engine } from "./engine.ts";
import { advance } from "./rules/advance.ts";
import { revokedStep } from "./rules/revoke.ts";
import { isTerminal } from "./rules/state-machine.ts";
import { readCursor, tasksUnderBlock, writeCursor } from "./store/block-rows.ts";

/** The cursor's name in the store. */
const CURSOR = "revocations";

/** Tasks that are ended in one transaction. */
const BATCH = 100;

/** How long to wait before the stream is opened again, milliseconds: doubled each time, up to the second. */
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 30_000;

export interface RevocationFollowerOptions {
  readonly engine: Engine;
  readonly revocations: Dependencies["revocations"];
  readonly timers: Timers;
  readonly log: Logger;
}

/**
 * Ends tasks whose authority is taken back: follows the log of revocations from where it was left, and reconnects while
 * the tokens service is away. The cursor moves on in the transaction that ends the last task under a block, so none is
 * passed over.
 */
export class RevocationFollower {
  readonly #engine: Engine;
  readonly #revocations: Dependencies["revocations"];
  readonly #timers: Timers;
  readonly #log: Logger;
  readonly #closing = new AbortController();
  #done: Promise<void> = Promise.resolve();

  constructor({ engine, revocations, timers, log }: RevocationFollowerOptions) {
    this.#engine = engine;
    this.#revocations = revocations;
    this.#timers = timers;
    this.#log = log;
  }

  start(): void {
    // The services of one process start one after the other; nobody is called before all of them are up.
    this.#done = this.#wait(0).then(() => this.#run());
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#done;
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    for (let waitMs = FIRST_WAIT_MS; !signal.aborted; waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS)) {
      try {
        const afterSequence = BigInt(await this.#engine.store.read((tx) => readCursor(tx, CURSOR)));
        const headers = ownHeaders("");
        for await (const { revocation } of this.#revocations.watchRevocations(
          { afterSequence },
          { signal, headers },
        )) {
          waitMs = FIRST_WAIT_MS;
          const revocationId = revocation?.entry?.revocationId ?? "";
          if (revocation !== undefined) await this.#apply(revocationId, Number(revocation.sequence));
        }
      } catch (error) {
        if (signal.aborted) return;
        this.#log.warn({ err: error, waitMs }, "revocations cannot be followed; trying again");
      }
      await this.#wait(waitMs);
    }
  }

  async #apply(revocationId: string, sequence: number): Promise<void> {
    for (let more = true; more; ) {
      more = await this.#engine.store.write(async (tx) => {
        const taskIds = await tasksUnderBlock(tx, revocationId, BATCH);
        for (const taskId of taskIds) {
          await this.#engine.changeWithin(tx, taskId, (before, nowMs) =>
            // A time limit may have ended it at this very moment.
            isTerminal(before.task.status)
              ? { record: before, events: [] }
              : advance(before, revokedStep("the authority that it ran under was revoked"), nowMs),
          );
        }
        if (taskIds.length === BATCH) return true;
        await writeCursor(tx, CURSOR, sequence);
        return false;
      });
    }
  }

  #wait(ms: number): Promise<void> {
    const { signal } = this.#closing;
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const over = () => {
        cancel();
        signal.removeEventListener("abort", over);
        resolve();
      };
      const cancel = this.#timers.after(ms, over);
      signal.addEventListener("abort", over, { once: true });
    });
  }
}
