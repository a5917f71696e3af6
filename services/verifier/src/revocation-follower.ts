import type { Client } from "@connectrpc/connect";
import { RevocationEntrySchema } from "@depute/contracts/delegateos/v0/revocation_pb";
import type { Revocation, RevocationService } from "@depute/contracts/depute/tokens/v1/revocation_service_pb";
import { fromTimestamp, type Timers } from "@depute/core";
import { type Logger, ownHeaders } from "@depute/service";
import type { Store } from "@depute/store";
import { encode } from "@depute/wire";
import { readCursor, writeCursor } from "./store/cursors.ts";
import { insertRevocation } from "./store/revocations.ts";
import type { TransparencyLog } from "./transparency-log.ts";

/** The cursor's name in the store. */
export const CURSOR = "revocations";

/** How long to wait before the stream is opened again, in milliseconds: doubled each time, up to the second. */
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 30_000;

export interface RevocationFollowerOptions {
  readonly store: Store;
  readonly log: TransparencyLog;
  readonly revocations: Client<typeof RevocationService>;
  readonly timers: Timers;
  readonly logger: Logger;
}

/**
 * Appends what the tokens service revokes to the transparency log: follows its log from where it was left, and
 * reconnects while it is away. The cursor moves on in the transaction that appends.
 */
export class RevocationFollower {
  readonly #options: RevocationFollowerOptions;
  readonly #closing = new AbortController();
  #done: Promise<void> = Promise.resolve();

  constructor(options: RevocationFollowerOptions) {
    this.#options = options;
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
    const { store, revocations, logger } = this.#options;
    const { signal } = this.#closing;
    for (let waitMs = FIRST_WAIT_MS; !signal.aborted; waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS)) {
      try {
        const afterSequence = BigInt(await store.read((tx) => readCursor(tx, CURSOR)));
        const options = { signal, headers: ownHeaders("") };
        for await (const { revocation } of revocations.watchRevocations({ afterSequence }, options)) {
          waitMs = FIRST_WAIT_MS;
          if (revocation !== undefined) await this.#append(revocation);
        }
      } catch (error) {
        if (signal.aborted) return;
        logger.warn({ err: error, waitMs }, "revocations cannot be followed; trying again");
      }
      await this.#wait(waitMs);
    }
  }

  async #append({ entry, sequence, recordTime }: Revocation): Promise<void> {
    const { store, log } = this.#options;
    await store.write(async (tx) => {
      if (entry !== undefined) {
        await log.append(tx, "revocation", encode(RevocationEntrySchema, entry));
        const { revocationId, revokedBy } = entry;
        await insertRevocation(tx, {
          revocationId,
          revokedBy,
          time: recordTime === undefined ? 0 : fromTimestamp(recordTime),
        });
      }
      await writeCursor(tx, CURSOR, Number(sequence));
    });
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
      const cancel = this.#options.timers.after(ms, over);
      signal.addEventListener("abort", over, { once: true });
    });
  }
}
