import type { Clock, Timers } from "@depute/core";
import { CLOCK_SKEW_MS, type CryptoEngine } from "@depute/dct";
import { DeadlineLoop, type Logger, type WorkLease } from "@depute/service";
import type { Store, WriteTx } from "@depute/store";
import type { KeyRevoker } from "./key-revoker.ts";
import type { RevocationReader } from "./revocation-reader.ts";
import type { RevocationState } from "./revocation-state.ts";
import { forgetBatches } from "./store/audit-rows.ts";
import { forgetDecisions } from "./store/audit-tree.ts";
import { forgetUsedBlocks } from "./store/binding-rows.ts";
import { forgetBlocks } from "./store/block-rows.ts";
import { forgetDelegations } from "./store/delegation-rows.ts";
import { forgetHolderSessions } from "./store/holder-session-rows.ts";
import { expirePending, findPending } from "./store/pending-rows.ts";
import { pruneRevocations } from "./store/revocation-rows.ts";
import { eraseRetired } from "./store/root-key-rows.ts";

const EVERY_MS = 60_000;
/**
 * Milliseconds after a token's expiry for which the store records that a single-use block of the token was used.
 * Another chain with the same block may expire later.
 */
const USED_BLOCKS_MS = 30 * 24 * 60 * 60 * 1000;
/**
 * Limits of one round for each kind of rows: one transaction deletes at most BATCH rows, and there are at most
 * MAX_ROUNDS transactions.
 */
const BATCH = 500;
const MAX_ROUNDS = 20;

interface HousekeepingOptions {
  engine: Pick<CryptoEngine, "sha256">;
  store: Store;
  clock: Clock;
  timers: Timers;
  log: Logger;
  state: Pick<RevocationState, "dropPending" | "dropPendingKey">;
  keyRevoker: Pick<KeyRevoker, "promote">;
  /**
   * Drops from memory the pending revocations that other replicas have logged or removed; undefined without replicas.
   */
  reader?: Pick<RevocationReader, "dropSettled"> | undefined;
  /** The lease of the replica that deletes rows; undefined without replicas. */
  lease?: WorkLease | undefined;
  /** Milliseconds for which the store keeps audit records; 0 means without limit. */
  auditRetentionMs: number;
  /** Milliseconds for which the store keeps delegations and blocks after their expiry; 0 means without limit. */
  delegationRetentionMs: number;
}

/** Deletes rows that the service does not need any more, in small batches. */
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
      failureMessage: "old rows cannot be deleted",
      maxWaitMs: EVERY_MS,
      runDueWork: () => this.tidy(),
    });
  }

  start(): void {
    this.#loop.start(EVERY_MS);
  }

  close(): Promise<void> {
    return this.#loop.close();
  }

  /** Runs one round of deletions. */
  async tidy(): Promise<void> {
    const { engine, clock, keyRevoker, auditRetentionMs, delegationRetentionMs } = this.#options;
    const now = clock.now();
    const jobs: ((tx: WriteTx) => Promise<number>)[] = [
      // Deletes the content of revocations of expired blocks. The service denies an expired block even without its
      // revocation.
      (tx) => pruneRevocations(tx, now - CLOCK_SKEW_MS, BATCH),
      (tx) => forgetUsedBlocks(tx, now - USED_BLOCKS_MS, BATCH),
      (tx) => this.#expirePending(tx, now),
      (tx) => forgetHolderSessions(tx, now, BATCH),
      // Waits for the clock skew, because a replica whose clock is behind may still sign with a root key that has
      // retired.
      (tx) => eraseRetired(tx, now - CLOCK_SKEW_MS),
    ];
    if (auditRetentionMs > 0) {
      const before = now - auditRetentionMs;
      jobs.push(
        (tx) => forgetDecisions(tx, engine.sha256, { before, limit: BATCH }),
        (tx) => forgetBatches(tx, before, BATCH),
      );
    }
    if (delegationRetentionMs > 0) {
      const before = now - delegationRetentionMs;
      jobs.push(
        (tx) => forgetDelegations(tx, before, BATCH),
        (tx) => forgetBlocks(tx, before, BATCH),
      );
    }
    const { reader, lease } = this.#options;
    await reader?.dropSettled();
    if (lease?.isHeld === false) return;
    await keyRevoker.promote(BATCH);
    for (const job of jobs) await this.#repeat(job);
  }

  async #expirePending(tx: WriteTx, now: number): Promise<number> {
    const { state } = this.#options;
    const over = await expirePending(tx, now, BATCH);
    for (const one of over) {
      if ("statement" in one) tx.afterCommit(() => state.dropPendingKey(one.statement.key));
      // If the same revoker has another pending entry for the block, with another scope, the block stays pending.
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
