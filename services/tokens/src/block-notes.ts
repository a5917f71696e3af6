import { RevocationSet, type VerifiedBlock } from "@depute/dct";
import type { Store, WriteTx } from "@depute/store";
import { type Binding, isBinding } from "./rules/bindings.ts";
import { bindBlock, readBindings, readNotedBlocks, useBlock } from "./store/binding-rows.ts";
import { readSpend } from "./store/spend-rows.ts";

/** Blocks of which everything noted is kept in memory, at about 300 bytes each unless bound to many places. */
const MAX_KNOWN = 10_000;

/** What is noted of some blocks. */
export interface Notes {
  /** Microcents charged and held under each block, in their order. */
  readonly counted: readonly number[];
  /** Where those of them count that are bound. */
  readonly bindings: readonly Binding[];
  /** Those of them that count once. */
  readonly singleUse: readonly string[];
}

/** What is noted of one block. */
interface Note {
  readonly counted: number;
  readonly bindings: readonly Binding[];
}

/** Takes back what was used up together with a block that was used before. */
class UsedError extends Error {}

/**
 * What the service has noted of blocks beside what they say themselves: what is spent under them, and where they count.
 *
 * Most blocks have nothing noted, and every verification asks. So the ids of those that have are kept in memory, and
 * what is noted of those that were asked for last; a store belongs to one process, which is the one that notes. Read from the
 * store it would have to wait until what others are just writing there is durable.
 */
export class BlockNotes {
  readonly #store: Store;
  readonly #max: number;
  readonly #noted = new RevocationSet();
  /** In the order of their last use. */
  readonly #known = new Map<string, Note>();
  /** Changes that took effect, so that what was read before one is not taken for what is there after it. */
  #changes = 0;

  constructor(store: Store, max: number = MAX_KNOWN) {
    this.#store = store;
    this.#max = max;
  }

  /** Learns which blocks have something noted; to be called before the first question. */
  async start(): Promise<void> {
    for (const id of await this.#store.read((tx) => readNotedBlocks(tx))) this.#noted.add(id);
  }

  /** Says what counts under a block when the transaction that changes it is durable. */
  count(tx: WriteTx, revocationId: string, counted: number): void {
    // If nothing is noted in the end, a question costs a look at the store.
    this.#noted.add(revocationId);
    tx.afterCommit(() => {
      this.#changes++;
      const known = this.#known.get(revocationId);
      if (known !== undefined) this.#known.set(revocationId, { ...known, counted });
    });
  }

  /** Binds a block, within the transaction that records it. */
  async bind(tx: WriteTx, revocationId: string, binding: Binding): Promise<void> {
    if (!isBinding(binding)) return;
    this.#noted.add(revocationId);
    await bindBlock(tx, revocationId, binding);
    tx.afterCommit(() => {
      this.#changes++;
      this.#known.delete(revocationId);
    });
  }

  /** What is noted; undefined when nothing is. */
  async read(revocationIds: readonly string[]): Promise<Notes | undefined> {
    const asked = revocationIds.filter((id) => this.#noted.has(id));
    if (asked.length === 0) return undefined;
    // Taken first: one may have to make room while others are read.
    const known = new Map(asked.map((id) => [id, this.#use(id)]));
    const unknown = asked.filter((id) => known.get(id) === undefined);
    const read = unknown.length === 0 ? undefined : await this.#readSome(unknown);
    const notes = revocationIds.map((id) => read?.get(id) ?? this.#known.get(id) ?? known.get(id));
    return {
      counted: notes.map((note) => note?.counted ?? 0),
      bindings: notes.flatMap((note) => note?.bindings ?? []),
      singleUse: revocationIds.filter((_, i) => notes[i]?.bindings.some(({ singleUse }) => singleUse)),
    };
  }

  /** Uses blocks up that count once: all of them, durably, or none where one was used before. */
  async useUp(blocks: readonly Pick<VerifiedBlock, "revocationId" | "expiresAt">[]): Promise<boolean> {
    try {
      await this.#store.write(async (tx) => {
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
    const note = this.#known.get(id);
    if (note !== undefined) this.#keep(id, note);
    return note;
  }

  #keep(id: string, note: Note): void {
    this.#known.delete(id);
    this.#known.set(id, note);
    if (this.#known.size <= this.#max) return;
    for (const oldest of this.#known.keys()) {
      this.#known.delete(oldest);
      return;
    }
  }
}
