import type { WriteTx } from "@depute/store";
import { lineagesOf, purgeLineage } from "../store/purge-rows.ts";

/**
 * Erases messages of one lineage of an organization. The limit to one lineage keeps the transaction short.
 *
 * @returns `limit` if more messages may exist; otherwise 1 if this call erased a lineage, and 0 if none existed
 */
export async function eraseMessages(tx: WriteTx, organization: string, limit: number): Promise<number> {
  const [rootId, another] = await lineagesOf(tx, organization, 2);
  if (rootId === undefined) return 0;
  const hasMessages = await purgeLineage(tx, rootId, limit);
  return hasMessages || another !== undefined ? limit : 1;
}
