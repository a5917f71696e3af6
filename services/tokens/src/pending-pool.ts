import { type Clock, DeputeError, ErrorReason } from "@depute/core";
import type { WriteTx } from "@depute/store";
import { countKept, countPool, insertPending, type Waiting } from "./store/pending-rows.ts";

/**
 * Maximum number of pending revocations by one known key. A key is known if a recorded block, a setting, an agent's
 * card or a credential contains it.
 */
const MAX_OF_ONE_KEY = 1000;
/** Number of equal shares into which the pool for unknown keys is divided. One caller may use one share. */
const SHARES = 10;

interface PendingPoolOptions {
  readonly clock: Clock;
  /** Maximum number of pending revocations by all unknown keys together. */
  readonly max: number;
  /** The longest lifetime of an accepted token, plus the tolerated clock skew, in milliseconds. */
  readonly longestLifeMs: number;
}

/** The caller that submitted a pending revocation. */
export interface PendingCaller {
  readonly caller: string;
  /** Whether the revoker's key is known: a recorded block, a setting, an agent's card or a credential contains it. */
  readonly isKnown: boolean;
}

/**
 * Limits the number of pending revocations. Each known key has a quota, and its entries do not expire. All unknown keys
 * share one pool, because any party can generate keys. Each caller may use one share of the pool. An entry in the pool
 * expires when every token that is older than the entry has expired.
 */
export class PendingPool {
  readonly #options: PendingPoolOptions;

  constructor(options: PendingPoolOptions) {
    this.#options = options;
  }

  /**
   * Stores a pending revocation.
   *
   * @throws DeputeError LIMIT_EXCEEDED
   */
  async add(tx: WriteTx, id: string, waiting: Waiting, { caller, isKnown }: PendingCaller): Promise<void> {
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
    "too many revocations are pending; send a token that contains the block, or record the block first",
    { metadata: { limit: "pending_revocations", max: String(max) } },
  );
}
