import { FOUND, integer, type ReadTx, row, text, type WriteTx } from "@depute/store";
import type { StoredMessage } from "./message-rows.ts";

const LINEAGE_ROW = row({ messages: integer, outside: integer, refusals: integer, organization: text });
const COUNTS_ROW = row({ messages: integer, refusals: integer, organization: text });
const REFUSALS_ROW = row({ refusals: integer });

/**
 * Reads a lineage: its owner, and the numbers of all accepted messages, of accepted messages from outside senders, and
 * of refused messages. Returns undefined for an unknown lineage.
 */
export async function readLineage(tx: ReadTx, rootId: string) {
  return tx.get(
    LINEAGE_ROW,
    "SELECT messages, outside, refusals, organization FROM cap_lineages WHERE root_id = ?",
    [rootId],
  );
}

/** The counter that a message increases: participants' messages, outside senders' messages, or refusals. */
export type Counted = "inside" | "outside" | "refused";

/**
 * Counts a message in its lineage.
 *
 * @param organization the owner of the lineage, if this message begins the lineage; empty for none
 * @returns the message's number, and the owner of the lineage
 */
export async function countMessage(
  tx: WriteTx,
  { rootId, organization }: Pick<StoredMessage, "rootId" | "organization">,
  counted: Counted,
  nowMs: number,
): Promise<Pick<StoredMessage, "number" | "organization">> {
  const isRefused = counted === "refused";
  const row = await tx.get(
    COUNTS_ROW,
    `INSERT INTO cap_lineages (root_id, organization, messages, outside, refusals, update_ms)
     VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (root_id) DO UPDATE SET messages = cap_lineages.messages + excluded.messages,
       outside = cap_lineages.outside + excluded.outside, refusals = cap_lineages.refusals + excluded.refusals,
       update_ms = excluded.update_ms
     RETURNING messages, refusals, organization`,
    [rootId, organization, isRefused ? 0 : 1, counted === "outside" ? 1 : 0, isRefused ? 1 : 0, nowMs],
  );
  return {
    number: (row?.messages ?? 0) + (row?.refusals ?? 0),
    organization: row?.organization ?? organization,
  };
}

/** Increases the number of a sender's refusals in a lineage, and returns the new number. */
export async function countRefusal(tx: WriteTx, rootId: string, senderId: string): Promise<number> {
  const row = await tx.get(
    REFUSALS_ROW,
    `INSERT INTO cap_refusals (root_id, sender_id, refusals) VALUES (?, ?, 1)
     ON CONFLICT (root_id, sender_id) DO UPDATE SET refusals = cap_refusals.refusals + 1
     RETURNING refusals`,
    [rootId, senderId],
  );
  return row?.refusals ?? 0;
}

/** Records that a participant takes part in a lineage. */
export async function insertParty(tx: WriteTx, rootId: string, agentId: string): Promise<void> {
  await tx.run("INSERT INTO cap_parties (root_id, agent_id) VALUES (?, ?) ON CONFLICT DO NOTHING", [
    rootId,
    agentId,
  ]);
}

export async function isParty(tx: ReadTx, rootId: string, agentId: string): Promise<boolean> {
  const party = await tx.get(FOUND, "SELECT 1 FROM cap_parties WHERE root_id = ? AND agent_id = ?", [
    rootId,
    agentId,
  ]);
  return party !== undefined;
}

/**
 * Stores the digests of a lineage's tool results, so that participants may attach these results to further messages.
 */
export async function insertToolResults(
  tx: WriteTx,
  rootId: string,
  digests: readonly string[],
): Promise<void> {
  for (const digest of new Set(digests)) {
    await tx.run("INSERT INTO cap_tool_results (root_id, digest) VALUES (?, ?) ON CONFLICT DO NOTHING", [
      rootId,
      digest,
    ]);
  }
}

export async function hasToolResult(tx: ReadTx, rootId: string, digest: string): Promise<boolean> {
  const digestRow = await tx.get(FOUND, "SELECT 1 FROM cap_tool_results WHERE root_id = ? AND digest = ?", [
    rootId,
    digest,
  ]);
  return digestRow !== undefined;
}
