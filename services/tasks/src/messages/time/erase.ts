import type { WriteTx } from "@depute/store";
import { lineagesOf, purgeLineage } from "../store/purge-rows.ts";

/**
 * Erases messages of one lineage of an organization, so that the transaction stays short.
 *
 * @returns `limit` while more may exist, otherwise 1 or 0
 */
export async function eraseMessages(tx: WriteTx, organization: string, limit: number): Promise<number> {
  const [rootId, another] = await lineagesOf(tx, organization, 2);
  if (rootId === undefined) return 0;
  const hasMessages = await purgeLineage(tx, rootId, limit);
  return hasMessages || another !== undefined ? limit : 1;
}
