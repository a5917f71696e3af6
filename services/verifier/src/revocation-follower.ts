import type { Client } from "@connectrpc/connect";
import { RevocationEntrySchema } from "@depute/contracts/delegateos/v0/revocation_pb";
import type { Revocation, RevocationService } from "@depute/contracts/depute/tokens/v1/revocation_service_pb";
import { canonicalJson, fromTimestamp, type Timers } from "@depute/core";
import { type Logger, ownHeaders, StreamFollower, type WorkLease } from "@depute/service";
import type { Store } from "@depute/store";
import { encode } from "@depute/wire";
import { readCursor, writeCursor } from "./store/cursors.ts";
import { insertRevocation } from "./store/revocations.ts";
import type { TransparencyLog } from "./transparency-log.ts";

/** Name of the cursor: the position in the tokens service's log up to which the follower has copied revocations. */
export const CURSOR = "revocations";

export interface RevocationFollowerOptions {
  readonly store: Store;
  readonly log: TransparencyLog;
  readonly revocations: Client<typeof RevocationService>;
  readonly timers: Timers;
  readonly logger: Logger;
  /** The lease of the replica that follows the stream; undefined without replicas. */
  readonly lease: WorkLease | undefined;
}

/**
 * Follows the tokens service's stream of revocations, and appends each revocation to the transparency log. Opens the
 * stream again after a failure. The transaction that appends a revocation also moves the cursor, so a restart causes no
 * gap and no duplicate. Only the replica with the lease follows the stream.
 */
export class RevocationFollower {
  readonly #options: RevocationFollowerOptions;
  readonly #follower: StreamFollower;

  constructor(options: RevocationFollowerOptions) {
    this.#options = options;
    const { timers, logger: log, lease } = options;
    this.#follower = new StreamFollower({
      streamName: "revocations",
      follow: (signal, onEntry) => this.#follow(signal, onEntry),
      timers,
      log,
      lease,
    });
  }

  start(): void {
    this.#follower.start();
  }

  close(): Promise<void> {
    return this.#follower.close();
  }

  async #follow(signal: AbortSignal, onEntry: () => void): Promise<void> {
    const { store, revocations } = this.#options;
    const afterSequence = BigInt(await store.read((tx) => readCursor(tx, CURSOR)));
    const options = { signal, headers: ownHeaders("") };
    for await (const { revocation } of revocations.watchRevocations({ afterSequence }, options)) {
      onEntry();
      if (revocation !== undefined) await this.#append(revocation);
    }
  }

  async #append({ entry, sequence, recordTime }: Revocation): Promise<void> {
    const { store, log } = this.#options;
    await store.write(async (tx) => {
      // For a short time after this replica has lost the lease, two replicas may follow the stream. This replica skips
      // a revocation that the other replica has appended.
      if ((await readCursor(tx, CURSOR)) >= Number(sequence)) return;
      if (entry !== undefined) {
        await log.append(tx, "revocation", canonicalJson(encode(RevocationEntrySchema, entry)));
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
}
