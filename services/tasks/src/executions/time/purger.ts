import { RegularPurge, type RegularPurgeOptions } from "@depute/service";
import type { TaskStore } from "../../core/index.ts";
import { deleteExecution, endedExecutions, rejectedExecutions } from "../store/purge-rows.ts";

/** Maximum number of executions that one transaction deletes. */
const BATCH = 100;
/**
 * Minimum time in milliseconds for which an idempotency key and its response are stored. A smaller value in the
 * settings has no effect.
 */
const SHORTEST_MS = 24 * 3_600_000;

export interface PurgerOptions extends RegularPurgeOptions {
  readonly store: TaskStore;
  /** Milliseconds for which an execution is stored after its end. */
  readonly retentionMs: number;
  /** Milliseconds for which a rejected request is stored. */
  readonly rejectedRetentionMs: number;
}

/**
 * Deletes executions that ended long ago, with their receipts. An execution whose payment is not settled is not
 * deleted.
 */
export class ExecutionPurger extends RegularPurge {
  readonly #options: PurgerOptions;

  constructor(options: PurgerOptions) {
    super(options, "executions");
    this.#options = options;
  }

  /** Purges executions whose retention has passed. */
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
