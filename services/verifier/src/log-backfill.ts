import type { Store } from "@depute/store";
import { setLogIndex, unlogged } from "./store/attestations.ts";
import type { TransparencyLog } from "./transparency-log.ts";

/** Maximum number of attestations in one transaction. */
const BATCH = 50;

/**
 * Appends to the transparency log all stored attestations that have no leaf in it, in the order in which they were
 * stored.
 */
export async function appendUnlogged(store: Store, log: TransparencyLog): Promise<void> {
  for (let more = true; more; ) {
    more = await store.write(async (tx) => {
      const rows = await unlogged(tx, BATCH);
      for (const { id, document } of rows) {
        await setLogIndex(tx, id, await log.append(tx, "attestation", document));
      }
      return rows.length === BATCH;
    });
  }
}
