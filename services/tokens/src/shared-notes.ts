import type { Timers } from "@depute/core";
import type { VerifiedBlock } from "@depute/dct";
import type { ReadTx, Store, WriteTx } from "@depute/store";
import { type BlockRecords, type Notes, useUpBlocks } from "./block-notes.ts";
import type { CurrentRevocations } from "./revocation-reader.ts";
import { type Binding, isBinding } from "./rules/bindings.ts";
import { padded } from "./rules/padded.ts";
import { bindBlock, readBindingsById } from "./store/binding-rows.ts";
import { readSpendOf } from "./store/spend-rows.ts";

/** Maximum number of blocks in one read. */
const BATCH = 500;

interface SharedNotesOptions {
  readonly store: Store;
  readonly timers: Timers;
  /**
   * Checks, in the transaction that reads the blocks' limits, whether this replica has read all revocations. Reads missing
   * ones after the transaction.
   */
  readonly revocations: CurrentRevocations;
}

interface Waiting {
  readonly ids: readonly string[];
  readonly resolve: (notes: Notes | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * The recorded limits of blocks, for replicas that share a store. Every verification reads the rows, because any
 * replica may have changed them. The verifications of one turn of the event loop share one read. The verifications that
 * arrive during a read share the next read. The same transaction shows whether this replica has read all revocations.
 */
export class SharedNotes implements BlockRecords {
  readonly #options: SharedNotesOptions;
  #waiting: Waiting[] = [];
  #isReading = false;

  constructor(options: SharedNotesOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {}

  /** Does nothing, because this class holds no spend in memory. */
  count(): void {}

  async bind(tx: WriteTx, revocationId: string, binding: Binding): Promise<void> {
    if (isBinding(binding)) await bindBlock(tx, revocationId, binding);
  }

  read(ids: readonly string[]): Promise<Notes | undefined> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ ids, resolve, reject });
      if (!this.#isReading) void this.#readAll();
    });
  }

  useUp(blocks: readonly Pick<VerifiedBlock, "revocationId" | "expiresAt">[]): Promise<boolean> {
    return useUpBlocks(this.#options.store, blocks);
  }

  /**
   * Reads batches until no verification waits. The verifications that arrive during a read share the next read. The
   * promise never rejects.
   */
  async #readAll(): Promise<void> {
    this.#isReading = true;
    await this.#options.timers.nextTurn();
    while (this.#waiting.length > 0) {
      for (const batch of batches(this.#waiting.splice(0))) await this.#readSome(batch);
    }
    this.#isReading = false;
  }

  /**
   * Reads the limits for a batch of verifications, and settles their promises. The promise of this method never
   * rejects.
   */
  async #readSome(batch: readonly Waiting[]): Promise<void> {
    const { store, revocations } = this.#options;
    const ids = padded([...new Set(batch.flatMap((one) => one.ids))]);
    const began = revocations.begin();
    try {
      const read = await store.read(async (tx) => ({
        ...(await recordsOf(tx, ids)),
        isCurrent: await revocations.isCurrent(tx),
      }));
      await revocations.settle(began, read.isCurrent);
      for (const { ids, resolve } of batch) resolve(notesOf(ids, read));
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }
}

interface Records {
  /** Microcents charged plus reserved, by block. A block without spend and reservations is absent. */
  readonly counted: ReadonlyMap<string, number>;
  readonly bindings: ReadonlyMap<string, Binding>;
}

async function recordsOf(tx: ReadTx, ids: readonly string[]): Promise<Records> {
  return { counted: await readSpendOf(tx, ids), bindings: await readBindingsById(tx, ids) };
}

function notesOf(ids: readonly string[], { counted, bindings }: Records): Notes | undefined {
  if (!ids.some((id) => counted.has(id) || bindings.has(id))) return undefined;
  return {
    counted: ids.map((id) => counted.get(id) ?? 0),
    bindings: ids.flatMap((id) => bindings.get(id) ?? []),
    singleUse: ids.filter((id) => bindings.get(id)?.singleUse === true),
  };
}

/** Splits verifications into groups such that one read can hold the blocks of a group. */
function batches(waiting: readonly Waiting[]): Waiting[][] {
  const groups: Waiting[][] = [];
  let size = BATCH;
  for (const one of waiting) {
    if (size + one.ids.length > BATCH) {
      groups.push([]);
      size = 0;
    }
    groups.at(-1)?.push(one);
    size += one.ids.length;
  }
  return groups;
}
