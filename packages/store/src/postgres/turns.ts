import { integer, row } from "../row.ts";
import type { ReadTx } from "../store.ts";
import { lockStatement } from "./locks.ts";

/**
 * The table with the version of a shared schema: a number. Each batch that changed rows raises this number, in the
 * transaction of the batch.
 */
export const VERSION_TABLE = `
CREATE TABLE IF NOT EXISTS store_version (one BIGINT PRIMARY KEY, version BIGINT NOT NULL);
INSERT INTO store_version (one, version) VALUES (1, 0) ON CONFLICT (one) DO NOTHING;
`;

const VERSION_ROW = row({ version: integer });
const READ = "SELECT version FROM store_version";
const RAISE = "UPDATE store_version SET version = version + 1";

/** Returns the version of a shared schema: the number of commits that changed rows. */
export async function readVersion(tx: ReadTx): Promise<number> {
  return (await tx.get(VERSION_ROW, READ))?.version ?? 0;
}

/**
 * The turns of one process in a shared schema. Each batch waits for the schema's lock `turn`, so that the batches of
 * all processes run one after the other. Then this process compares the version of the schema with the version after
 * its own last batch. A difference shows that another process has committed in the meantime, and that copies of rows in
 * memory are stale.
 */
export class Turns {
  readonly #lock: string;
  readonly #onError: (error: unknown, message: string) => void;
  readonly #listeners: (() => void)[] = [];
  /** The version after this process's last batch; undefined if this process does not know it. */
  #version: number | undefined;
  /** The version before the latest batch of this process that raised it; undefined before the first such batch. */
  #raised: number | undefined;

  constructor(schema: string, onError: (error: unknown, message: string) => void) {
    this.#lock = lockStatement("turn", schema);
    this.#onError = onError;
  }

  /** Registers a listener. See `Sharing.onOthersCommit`. */
  onOthersCommit(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /**
   * Returns the statements that wait for the turn, and read the version last. Run them right after BEGIN, and pass the
   * row to `begun`. Postgres takes the snapshot of the read after it has granted the lock.
   */
  begin(): string {
    return `${this.#lock}; ${READ}`;
  }

  /** Notes the version at the beginning of the turn. */
  begun(row: unknown): void {
    const { version } = VERSION_ROW.check(row as never);
    const isStale = version !== this.#version;
    this.#version = version;
    if (isStale) this.#tell();
  }

  /**
   * Returns the statement that raises the version. Run the statement right before COMMIT, and call `committed` after
   * COMMIT.
   */
  raise(): string {
    // Until COMMIT succeeds, this process does not know the version. After a failed COMMIT, the version stays unknown.
    this.#raised = this.#version;
    this.#version = undefined;
    return RAISE;
  }

  /** Notes that the batch that raised the version has committed. */
  committed(): void {
    if (this.#raised !== undefined) this.#version = this.#raised + 1;
  }

  #tell(): void {
    for (const listener of this.#listeners) {
      try {
        listener();
      } catch (error) {
        this.#onError(error, "a listener for commits of other processes threw");
      }
    }
  }
}
