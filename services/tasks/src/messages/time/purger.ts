import { RegularPurge, type RegularPurgeOptions } from "@depute/service";
import type { TaskStore } from "../../core/index.ts";
import { purgeLineage, quietLineages } from "../store/purge-rows.ts";

/** Lineages that one look forgets, and messages that one transaction does. */
const LINEAGES = 20;
const MESSAGES = 100;

export interface MessagePurgerOptions extends RegularPurgeOptions {
  readonly store: TaskStore;
  /** How long a lineage is kept after its last message, milliseconds. */
  readonly retentionMs: number;
}

/** Forgets the messages of lineages that ended long ago. */
export class MessagePurger extends RegularPurge {
  readonly #options: MessagePurgerOptions;

  constructor(options: MessagePurgerOptions) {
    super(options, "messages");
    this.#options = options;
  }

  /** Purges what is due, up to what one look forgets. */
  override async purge(): Promise<void> {
    const { store, clock, retentionMs } = this.#options;
    const due = await store.read((tx) => quietLineages(tx, clock.now() - retentionMs, LINEAGES));
    for (const rootId of due) {
      for (let more = true; more && !this.isClosed; ) {
        more = await store.write((tx) => purgeLineage(tx, rootId, MESSAGES));
      }
    }
  }
}
