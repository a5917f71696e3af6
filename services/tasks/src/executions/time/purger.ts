import { RegularPurge, type RegularPurgeOptions } from "@depute/service";
import type { TaskStore } from "../../core/index.ts";
import { deleteExecution, endedExecutions, rejectedExecutions } from "../store/purge-rows.ts";

/** Maximum number of executions that one transaction deletes. */
const BATCH = 100;
/**
 * Minimum time in milliseconds for which the store keeps an execution or a rejected request, and so its idempotency
 * key. A smaller value in the settings has no effect.
 */
const SHORTEST_MS = 24 * 3_600_000;

export interface PurgerOptions extends RegularPurgeOptions {
  readonly store: TaskStore;
  /** Milliseconds for which the store keeps an execution after its end. */
  readonly retentionMs: number;
  /** Milliseconds for which the store keeps a rejected request. */
  readonly rejectedRetentionMs: number;
}

/**
 * Deletes executions with their receipts when their retention has passed. Does not delete an execution whose payment is
 * not settled.
 */
export class ExecutionPurger extends RegularPurge {
  readonly #options: PurgerOptions;

  constructor(options: PurgerOptions) {
    super(options, "executions");
    this.#options = options;
  }

  /** Deletes executions and rejected requests whose retention has passed. */
  override async purge(): Promise<void> {
    const { store, clock, retentionMs, rejectedRetentionMs } = this.#options;
    for (let more = true; more && !this.isClosed; ) {
      more = await store.write(async (tx) => {
        const before = (keptMs: number) => clock.now() - Math.max(keptMs, SHORTEST_MS);
        const due = [
          ...(await endedExecutions(tx, before(retentionMs), BATCH)),
          ...(await rejectedExecutions(tx, before(rejectedRetentionMs), BATCH)),
        ];
        for (const requestId of new Set(due)) await deleteExecution(tx, requestId);
        return due.length >= BATCH;
      });
    }
  }
}
