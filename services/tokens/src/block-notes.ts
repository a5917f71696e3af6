import { RevocationSet, type VerifiedBlock } from "@depute/dct";
import type { Store, WriteTx } from "@depute/store";
import { type Binding, isBinding } from "./rules/bindings.ts";
import { bindBlock, readBindings, readNotedBlocks, useBlock } from "./store/binding-rows.ts";
import { readSpend } from "./store/spend-rows.ts";

/** Maximum number of blocks with cached limits. A block takes about 300 bytes, more with many bindings. */
const MAX_KNOWN = 10_000;

/** The recorded limits of the blocks in one read: spend, bindings and single use. */
export interface Notes {
  /** For each block of the read, in the same order: the microcents charged plus reserved under it. */
  readonly counted: readonly number[];
  /** All bindings of the blocks of the read. A block without a binding adds none. */
  readonly bindings: readonly Binding[];
  /** The ids of the single-use blocks in the read. */
  readonly singleUse: readonly string[];
}

/** Reads and writes the recorded limits of blocks. */
export interface BlockRecords {
  /** Loads the records that the class keeps in memory, if any. Call this method before the first read. */
  start(): Promise<void>;
  /**
   * Records the new spend of a block, in microcents charged plus reserved. Call this method in the transaction that
   * changes the spend.
   */
  count(tx: WriteTx, revocationId: string, counted: number): void;
  /** Stores the binding of a block in the transaction `tx`. */
  bind(tx: WriteTx, revocationId: string, binding: Binding): Promise<void>;
  /** Reads the recorded limits of blocks; undefined if none of the blocks has limits. */
  read(revocationIds: readonly string[]): Promise<Notes | undefined>;
  /**
   * Durably marks single-use blocks as used: all of them, or none if one was used before.
   *
   * @returns false if one of the blocks was used before
   */
  useUp(blocks: readonly Pick<VerifiedBlock, "revocationId" | "expiresAt">[]): Promise<boolean>;
}

/** The recorded limits of one block. */
interface Note {
  readonly counted: number;
  readonly bindings: readonly Binding[];
}

/** Thrown to roll back the transaction of `useUpBlocks`, because one of the blocks was used before. */
class UsedError extends Error {}

/**
 * The recorded limits of blocks: spend, bindings and single use. Every verification needs them, but most blocks have
 * none. So memory holds the ids of all blocks with limits, and caches recently read limits. Only this process writes to
 * the store, so the memory stays correct. Reads of the store would be slow, because they wait until concurrent writes
 * are durable.
 */
export class BlockNotes implements BlockRecords {
  readonly #store: Store;
  readonly #max: number;
  readonly #notedIds = new RevocationSet();
  /** The cached limits by block, least recently used first. */
  readonly #notesById = new Map<string, Note>();
  /**
   * Number of committed changes. If this number changes during a read of the store, the cache does not store the
   * result.
   */
  #changes = 0;

  constructor(store: Store, max: number = MAX_KNOWN) {
    this.#store = store;
    this.#max = max;
  }

  /** Loads the ids of blocks with recorded limits. Call this method before the first read. */
  async start(): Promise<void> {
    for (const id of await this.#store.read((tx) => readNotedBlocks(tx))) this.#notedIds.add(id);
  }

  /** Updates the cached spend of a block after the transaction commits. */
  count(tx: WriteTx, revocationId: string, counted: number): void {
    // Adds the id before the commit. If the transaction fails, the only effect is an unneeded read of the store.
    this.#notedIds.add(revocationId);
    tx.afterCommit(() => {
      this.#changes++;
      const knownNote = this.#notesById.get(revocationId);
      if (knownNote !== undefined) this.#notesById.set(revocationId, { ...knownNote, counted });
    });
  }

  async bind(tx: WriteTx, revocationId: string, binding: Binding): Promise<void> {
    if (!isBinding(binding)) return;
    this.#notedIds.add(revocationId);
    await bindBlock(tx, revocationId, binding);
    tx.afterCommit(() => {
      this.#changes++;
      this.#notesById.delete(revocationId);
    });
  }

  async read(revocationIds: readonly string[]): Promise<Notes | undefined> {
    const askedIds = revocationIds.filter((id) => this.#notedIds.has(id));
    if (askedIds.length === 0) return undefined;
    // Copies the cached limits first, because the read of missing limits may evict them from the cache.
    const notesById = new Map(askedIds.map((id) => [id, this.#use(id)]));
    const unknown = askedIds.filter((id) => notesById.get(id) === undefined);
    const read = unknown.length === 0 ? undefined : await this.#readSome(unknown);
    const notes = revocationIds.map((id) => read?.get(id) ?? this.#notesById.get(id) ?? notesById.get(id));
    return {
      counted: notes.map((note) => note?.counted ?? 0),
      bindings: notes.flatMap((note) => note?.bindings ?? []),
      singleUse: revocationIds.filter((_, i) => notes[i]?.bindings.some(({ singleUse }) => singleUse)),
    };
  }

  useUp(blocks: readonly Pick<VerifiedBlock, "revocationId" | "expiresAt">[]): Promise<boolean> {
    return useUpBlocks(this.#store, blocks);
  }

  async #readSome(ids: readonly string[]): Promise<ReadonlyMap<string, Note>> {
    const before = this.#changes;
    const notes = await this.#store.read(async (tx) => {
      const spend = await readSpend(tx, ids);
      const notes = new Map<string, Note>();
      for (const [i, id] of ids.entries()) {
        const { spent, held } = spend[i] ?? { spent: 0, held: 0 };
        notes.set(id, { counted: spent + held, bindings: await readBindings(tx, [id]) });
      }
      return notes;
    });
    if (this.#changes === before) for (const [id, note] of notes) this.#keep(id, note);
    return notes;
  }

  #use(id: string): Note | undefined {
    const note = this.#notesById.get(id);
    if (note !== undefined) this.#keep(id, note);
    return note;
  }

  #keep(id: string, note: Note): void {
    this.#notesById.delete(id);
    this.#notesById.set(id, note);
    if (this.#notesById.size <= this.#max) return;
    for (const oldest of this.#notesById.keys()) {
      this.#notesById.delete(oldest);
      return;
    }
  }
}

/** Marks single-use blocks as used; see {@link BlockRecords.useUp}. */
export async function useUpBlocks(
  store: Store,
  blocks: readonly Pick<VerifiedBlock, "revocationId" | "expiresAt">[],
): Promise<boolean> {
  try {
    await store.write(async (tx) => {
      for (const { revocationId, expiresAt } of blocks) {
        if (!(await useBlock(tx, revocationId, expiresAt))) throw new UsedError();
      }
    });
    return true;
  } catch (thrown) {
    if (thrown instanceof UsedError) return false;
    throw thrown;
  }
}
