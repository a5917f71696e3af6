import { RegularPurge, type RegularPurgeOptions } from "@depute/service";
import type { TaskStore } from "../../core/index.ts";
import { purgeLineage, quietLineages } from "../store/purge-rows.ts";

/** Maximum lineages that one run deletes (LINEAGES), and maximum messages that one transaction deletes (MESSAGES). */
const LINEAGES = 20;
const MESSAGES = 100;

export interface MessagePurgerOptions extends RegularPurgeOptions {
  readonly store: TaskStore;
  /** Milliseconds for which the store keeps a lineage after its last message. */
  readonly retentionMs: number;
}

/** Deletes the messages of lineages without open tasks after the retention time. */
export class MessagePurger extends RegularPurge {
  readonly #options: MessagePurgerOptions;

  constructor(options: MessagePurgerOptions) {
    super(options, "messages");
    this.#options = options;
  }

  /** Purges up to LINEAGES lineages whose retention time has passed. */
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
