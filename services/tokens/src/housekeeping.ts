import type { Clock, Timers } from "@depute/core";
import { CLOCK_SKEW_MS } from "@depute/dct";
import { DeadlineLoop, type Logger } from "@depute/service";
import type { Store, WriteTx } from "@depute/store";
import type { KeyRevoker } from "./key-revoker.ts";
import type { RevocationState } from "./revocation-state.ts";
import { forgetDecisions } from "./store/audit-rows.ts";
import { forgetUsedBlocks } from "./store/binding-rows.ts";
import { forgetBlocks } from "./store/block-rows.ts";
import { forgetDelegations } from "./store/delegation-rows.ts";
import { expirePending, findPending } from "./store/pending-rows.ts";
import { pruneRevocations } from "./store/revocation-rows.ts";

const EVERY_MS = 60_000;
/** Milliseconds that a used block is known after its token is over: in another chain it may be over later. */
const USED_BLOCKS_MS = 30 * 24 * 60 * 60 * 1000;
/** Rows of one kind that are removed in one transaction, and transactions in one round. */
const BATCH = 500;
const MAX_ROUNDS = 20;

interface HousekeepingOptions {
  store: Store;
  clock: Clock;
  timers: Timers;
  log: Logger;
  state: Pick<RevocationState, "dropPending" | "dropPendingKey">;
  keyRevoker: Pick<KeyRevoker, "promote">;
  /** Milliseconds that decisions are kept; 0 for ever. */
  auditRetentionMs: number;
  /** Milliseconds after its expiry that a delegation, and a block, are kept; 0 for ever. */
  delegationRetentionMs: number;
}

/** Removes what is old enough, a little at a time. */
export class Housekeeping {
  readonly #options: HousekeepingOptions;
  readonly #loop: DeadlineLoop;

  constructor(options: HousekeepingOptions) {
    this.#options = options;
    const { clock, timers, log } = options;
    this.#loop = new DeadlineLoop({
      clock,
      timers,
      log,
      what: "what is old cannot be removed",
      maxWaitMs: EVERY_MS,
      look: () => this.tidy(),
    });
  }

  start(): void {
    this.#loop.start(EVERY_MS);
  }

  close(): Promise<void> {
    return this.#loop.close();
  }

  /** One round. */
  async tidy(): Promise<void> {
    const { clock, keyRevoker, auditRetentionMs, delegationRetentionMs } = this.#options;
    const now = clock.now();
    const jobs: ((tx: WriteTx) => Promise<number>)[] = [
      // A block that is over by itself is denied as expired, whatever the log says of it.
      (tx) => pruneRevocations(tx, now - CLOCK_SKEW_MS, BATCH),
      (tx) => forgetUsedBlocks(tx, now - USED_BLOCKS_MS, BATCH),
      (tx) => this.#expirePending(tx, now),
    ];
    if (auditRetentionMs > 0) jobs.push((tx) => forgetDecisions(tx, now - auditRetentionMs, BATCH));
    if (delegationRetentionMs > 0) {
      const before = now - delegationRetentionMs;
      jobs.push(
        (tx) => forgetDelegations(tx, before, BATCH),
        (tx) => forgetBlocks(tx, before, BATCH),
      );
    }
    await keyRevoker.promote(BATCH);
    for (const job of jobs) await this.#repeat(job);
  }

  async #expirePending(tx: WriteTx, now: number): Promise<number> {
    const { state } = this.#options;
    const over = await expirePending(tx, now, BATCH);
    for (const one of over) {
      if ("statement" in one) tx.afterCommit(() => state.dropPendingKey(one.statement.key));
      // Of two scopes the one that was said later may still wait.
      else if ((await findPending(tx, one.entry, now)).length === 0) {
        tx.afterCommit(() => state.dropPending(one.entry));
      }
    }
    return over.length;
  }

  async #repeat(job: (tx: WriteTx) => Promise<number>): Promise<void> {
    for (let round = 0; round < MAX_ROUNDS && !this.#loop.isClosed; round++) {
      if ((await this.#options.store.write(job)) < BATCH) return;
    }
  }
}
