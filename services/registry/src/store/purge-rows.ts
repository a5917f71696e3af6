import { fromBinary, toBinary } from "@bufbuild/protobuf";
import type { Agent } from "@depute/contracts/depute/registry/v1/agent_pb";
import { TrustEntrySchema } from "@depute/contracts/depute/registry/v1/trust_service_pb";
import type { PurgeTally } from "@depute/service";
import {
  bytes,
  deleteRows,
  FOUND,
  integer,
  markPurged,
  type ReadTx,
  row,
  text,
  type WriteTx,
} from "@depute/store";
import type { AgentMemory } from "./agents.ts";
import { textIndexOf } from "./text-indexes.ts";

const ID_ROW = row({ id: text });
const PRINCIPAL_ROW = row({ principal: text });
const AUTHORITY_ROW = row({ authority: text });
const EVIDENCE_ROW = row({ sequence: integer, record: bytes });

/** Returns ids of an organization's agents, removed agents last. */
export async function agentsOf(tx: ReadTx, organization: string, limit: number): Promise<string[]> {
  const rows = await tx.all(
    ID_ROW,
    "SELECT id FROM agents WHERE organization = ? AND organization <> '' ORDER BY status, id LIMIT ?",
    [organization, Math.max(0, limit)],
  );
  return rows.map(({ id }) => id);
}

/** Deletes versions of offers that an organization owns or a seller has. The offers' ids stay taken. */
export async function deleteOffersOf(
  tx: WriteTx,
  owner: { readonly column: "organization" | "seller_id"; readonly value: string },
  tally: PurgeTally,
): Promise<void> {
  const rows = await tx.all(
    ID_ROW,
    `SELECT DISTINCT offer_id AS id FROM offers WHERE ${owner.column} = ? AND ${owner.column} <> ''
     ORDER BY offer_id LIMIT ?`,
    [owner.value, Math.max(0, tally.left)],
  );
  for (const { id } of rows) {
    if (tally.left <= 0) return;
    await markPurged(tx, "offer", id);
    const versions = { keys: ["offer_id", "sequence"], where: "offer_id = ?", params: [id] };
    const count = await deleteRows(tx, { table: "offers", ...versions }, tally.left);
    tally.count("offers", count);
    // Deletes the words and buyers of the deleted versions.
    for (const table of ["offer_words", "offer_buyers"]) {
      await tx.run(
        `DELETE FROM ${table} WHERE offer_id = ? AND NOT EXISTS
           (SELECT 1 FROM offers f WHERE f.offer_id = ${table}.offer_id AND f.sequence = ${table}.sequence)`,
        [id],
      );
    }
  }
}

/**
 * Deletes an agent's rows in other tables, up to the number that the tally still allows. These tables may have many
 * rows of one agent.
 */
export async function deleteRecordsOfAgent(
  tx: WriteTx,
  { id, principal }: Pick<Agent, "id" | "principal">,
  tally: PurgeTally,
): Promise<void> {
  await deleteOffersOf(tx, { column: "seller_id", value: id }, tally);
  const versions = { table: "agent_versions", keys: ["agent_id", "revision"], where: "agent_id = ?" };
  tally.count("agent versions", await deleteRows(tx, { ...versions, params: [id] }, tally.left));
  const evidence = { table: "trust_evidence", keys: ["sequence"], where: "subject = ?" };
  tally.count("trust evidence", await deleteRows(tx, { ...evidence, params: [id] }, tally.left));
  await forgetGiver(tx, { id, principal }, tally);
  for (const column of ["subject", "counterpart"]) {
    const totals = { table: "trust", keys: ["subject", "counterpart"], where: `${column} = ?` };
    tally.count("trust", await deleteRows(tx, { ...totals, params: [id] }, tally.left));
  }
  const gains = { table: "trust_sources", keys: ["subject", "source"], where: "subject = ?" };
  tally.count("trust", await deleteRows(tx, { ...gains, params: [id] }, tally.left));
  await deleteTrustGivenBy(tx, `a${id}`, tally);
  await forgetChanges(tx, id, tally);
}

/** Deletes the counts of gains that came from a source. The scores stay. */
export async function deleteTrustGivenBy(tx: WriteTx, source: string, tally: PurgeTally): Promise<void> {
  const gains = {
    table: "trust_sources",
    keys: ["subject", "source"],
    where: "source = ?",
    params: [source],
  };
  tally.count("trust", await deleteRows(tx, gains, tally.left));
}

/** Removes the name of an agent from evidence that this agent gave about other agents. */
async function forgetGiver(
  tx: WriteTx,
  { id, principal }: Pick<Agent, "id" | "principal">,
  tally: PurgeTally,
): Promise<void> {
  const rows = await tx.all(
    EVIDENCE_ROW,
    "SELECT sequence, record FROM trust_evidence WHERE counterpart = ? ORDER BY sequence LIMIT ?",
    [id, Math.max(0, tally.left)],
  );
  for (const { sequence, record } of rows) {
    const entry = fromBinary(TrustEntrySchema, record);
    if (entry.evidence !== undefined) entry.evidence.counterpartAgentId = "";
    if (entry.witnessAgentId === id) entry.witnessAgentId = "";
    if (entry.recordedBy === principal) entry.recordedBy = "";
    await tx.run("UPDATE trust_evidence SET counterpart = '', record = ? WHERE sequence = ?", [
      toBinary(TrustEntrySchema, entry),
      sequence,
    ]);
  }
  tally.use(rows.length);
}

/** Removes an agent from the change log. The entries stay, so that watchers' positions stay valid. */
async function forgetChanges(tx: WriteTx, id: string, tally: PurgeTally): Promise<void> {
  if (tally.left <= 0) return;
  const { changes } = await tx.run(
    `UPDATE changes SET agent_id = '', before = NULL WHERE revision IN
       (SELECT revision FROM changes WHERE agent_id = ? ORDER BY revision LIMIT ?)`,
    [id, tally.left],
  );
  tally.use(changes);
}

/** Deletes an agent with its remaining rows. Its id stays taken. */
export async function deleteAgent(
  tx: WriteTx,
  { recent }: Pick<AgentMemory, "recent">,
  id: string,
): Promise<void> {
  recent.forget(tx, id);
  await markPurged(tx, "agent", id);
  await textIndexOf(tx).replace(tx, id, []);
  for (const table of [
    ...["capability_keys", "capabilities", "agent_keys", "agent_uris", "bound_keys", "viewers", "leases"],
  ]) {
    await tx.run(`DELETE FROM ${table} WHERE agent_id = ?`, [id]);
  }
  await tx.run("DELETE FROM agents WHERE id = ?", [id]);
}

/** Deletes members of an organization; returns their principals. */
export async function deleteMembersOf(
  tx: WriteTx,
  organization: string,
  tally: PurgeTally,
): Promise<string[]> {
  const rows = await tx.all(
    PRINCIPAL_ROW,
    `DELETE FROM members WHERE organization = ? AND principal IN
       (SELECT principal FROM members WHERE organization = ? ORDER BY principal LIMIT ?) RETURNING principal`,
    [organization, organization, Math.max(0, tally.left)],
  );
  tally.count("members", rows.length);
  return rows.map(({ principal }) => principal);
}

/** Deletes an organization's proofs, including revoked ones; returns their principals. */
export async function deleteProofsOf(
  tx: WriteTx,
  organization: string,
  tally: PurgeTally,
): Promise<string[]> {
  const rows = await tx.all(
    PRINCIPAL_ROW,
    `DELETE FROM organization_proofs WHERE id IN
       (SELECT id FROM organization_proofs WHERE organization = ? ORDER BY id LIMIT ?) RETURNING principal`,
    [organization, Math.max(0, tally.left)],
  );
  tally.count("organization proofs", rows.length);
  return [...new Set(rows.map(({ principal }) => principal))];
}

/** Whether a key has an agent, is a member of an organization, or has or had a proof of one. */
export async function isKeyInUse(tx: ReadTx, principal: string): Promise<boolean> {
  for (const table of ["agents", "members", "organization_proofs"]) {
    const found = await tx.get(FOUND, `SELECT 1 AS found FROM ${table} WHERE principal = ? LIMIT 1`, [
      principal,
    ]);
    if (found !== undefined) return true;
  }
  return false;
}

/**
 * Deletes grants that an organization owns or a principal has. Afterwards, a first registration does not assign the
 * authorities of these grants.
 */
export async function deleteGrantsOf(
  tx: WriteTx,
  owner: { readonly column: "organization" | "principal"; readonly value: string },
  tally: PurgeTally,
): Promise<void> {
  const rows = await tx.all(
    AUTHORITY_ROW,
    `DELETE FROM authority_grants WHERE (authority, principal) IN
       (SELECT authority, principal FROM authority_grants WHERE ${owner.column} = ? AND ${owner.column} <> ''
        ORDER BY authority, principal LIMIT ?) RETURNING authority`,
    [owner.value, Math.max(0, tally.left)],
  );
  for (const authority of new Set(rows.map((each) => each.authority))) {
    await markPurged(tx, "authority", authority);
  }
  tally.count("authority grants", rows.length);
}
