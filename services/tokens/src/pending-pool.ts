import { type Clock, DeputeError, ErrorReason } from "@depute/core";
import type { WriteTx } from "@depute/store";
import { countKept, countPool, insertPending, type Waiting } from "./store/pending-rows.ts";

/** Entries of one known revoker that may wait. */
const MAX_OF_ONE_KEY = 1000;
/** The part of the shared pool that one caller may take is one of so many. */
const SHARES = 10;

interface PendingPoolOptions {
  readonly clock: Clock;
  /** Revocations by unknown keys, all together. */
  readonly max: number;
  /** Longest life of a token that is accepted, with the skew of clocks, in milliseconds. */
  readonly longestLifeMs: number;
}

/** Whose revocation waits. */
export interface Bringer {
  readonly caller: string;
  /** Whether a recorded block, a card or a credential names the revoker's key. */
  readonly isKnown: boolean;
}

/**
 * The room of revocations that wait. What known keys say has its own, a share for each key, and stays. Anybody can make
 * keys, so all that unknown keys say shares one pool, of which one caller gets a part; it is forgotten when every token of
 * its time is over.
 */
export class PendingPool {
  readonly #options: PendingPoolOptions;

  constructor(options: PendingPoolOptions) {
    this.#options = options;
  }

  /** @throws DeputeError LIMIT_EXCEEDED */
  async add(tx: WriteTx, id: string, waiting: Waiting, { caller, isKnown }: Bringer): Promise<void> {
    const { clock, longestLifeMs } = this.#options;
    const now = clock.now();
    if (isKnown) {
      const { revokedBy } = "entry" in waiting ? waiting.entry : waiting.statement;
      if ((await countKept(tx, revokedBy)) >= MAX_OF_ONE_KEY) throw full(MAX_OF_ONE_KEY);
    } else await this.#assertRoom(tx, caller, now);
    await insertPending(tx, id, waiting, { caller, now, expireMs: isKnown ? 0 : now + longestLifeMs });
  }

  async #assertRoom(tx: WriteTx, caller: string, now: number): Promise<void> {
    const { max } = this.#options;
    const share = Math.ceil(max / SHARES);
    const { all, own } = await countPool(tx, caller, now);
    if (all >= max) throw full(max);
    if (own >= share) throw full(share);
  }
}

function full(max: number): DeputeError {
  return new DeputeError(
    ErrorReason.LIMIT_EXCEEDED,
    "too many revocations wait; send a token that has the block, or have the block recorded first",
    { metadata: { limit: "pending_revocations", max: String(max) } },
  );
}
