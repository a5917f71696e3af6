import { RevocationSet } from "@depute/dct";
import type { Store, WriteTx } from "@depute/store";
import type { Binding } from "./rules/bindings.ts";
import { bindBlock, readBindings, readNotedBlocks } from "./store/binding-rows.ts";
import { readSpend } from "./store/spend-rows.ts";

/** What is noted of some blocks. */
export interface Notes {
  /** Microcents charged and held under each block, in their order. */
  readonly counted: readonly number[];
  /** Where those of them count that are bound. */
  readonly bindings: readonly Binding[];
}

/**
 * What the service has noted of blocks beside what they say themselves: what is spent under them, and where they count.
 *
 * Most blocks have nothing noted, and every verification asks. So the ids of those that have are kept in memory, and the
 * store is asked for them alone; a store belongs to one process, which is the one that notes.
 */
export class BlockNotes {
  readonly #store: Store;
  readonly #noted = new RevocationSet();

  constructor(store: Store) {
    this.#store = store;
  }

  /** Learns which blocks have something noted; to be called before the first question. */
  async start(): Promise<void> {
    for (const id of await this.#store.read((tx) => readNotedBlocks(tx))) this.#noted.add(id);
  }

  /** Says that something is being noted of a block; if it is not in the end, a question costs a look at the store. */
  touch(revocationId: string): void {
    this.#noted.add(revocationId);
  }

  /** Binds a block, within the transaction that records it. */
  async bind(tx: WriteTx, revocationId: string, binding: Binding): Promise<void> {
    if (binding.audiences.length === 0 && binding.tenants.length === 0) return;
    this.touch(revocationId);
    await bindBlock(tx, revocationId, binding);
  }

  /** What is noted; undefined when nothing is. */
  async read(revocationIds: readonly string[]): Promise<Notes | undefined> {
    if (!revocationIds.some((id) => this.#noted.has(id))) return undefined;
    return this.#store.read(async (tx) => {
      const all = await readSpend(tx, revocationIds);
      return {
        counted: all.map(({ spent, held }) => spent + held),
        bindings: await readBindings(tx, revocationIds),
      };
    });
  }
}
