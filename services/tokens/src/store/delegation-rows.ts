import { type Owned, owningOrganization } from "@depute/core";
import {
  FOUND,
  integer,
  nullable,
  oneOf,
  type ReadTx,
  row,
  type SqlValue,
  text,
  type WriteTx,
} from "@depute/store";
import type { DelegationState, End, Link } from "../rules/delegations.ts";

const LAST_ROW = row({ last: nullable(integer) });
const REVOCATION_ID_AFTER_POSITION_ROW = row({ revocation_id: text, after_position: integer });
const OWNER_ROW = row({
  chain_id: text,
  organization: text,
  subject_issuer: text,
  subject_id: text,
  subject_principal: text,
});
const BLOCK_ROW = row({ chainId: text, block: text });

/**
 * The subject on whose behalf the platform minted a root block (RFC 8693 4.1). All members are empty without a subject.
 */
export interface Subject {
  /** The claims `iss` and `sub` of the exchanged JWT. */
  readonly subjectIssuer: string;
  readonly subjectId: string;
  /** The principal to which the identities file maps the subject. */
  readonly subjectPrincipal: string;
}

const NO_SUBJECT: Subject = { subjectIssuer: "", subjectId: "", subjectPrincipal: "" };
const POSITION_ROW = row({ position: integer });

/** A stored delegation. Times are epoch milliseconds; `endTime` is 0 while the delegation is active. */
export interface StoredDelegation extends Subject {
  readonly position: number;
  readonly chainId: string;
  readonly id: string;
  readonly parentId: string;
  readonly revocationId: string;
  readonly rootId: string;
  readonly from: string;
  readonly to: string;
  /** The organization that owns the delegation; empty for none. */
  readonly organization: string;
  readonly contractId: string;
  readonly depth: number;
  readonly state: DelegationState;
  readonly createTime: number;
  readonly expireTime: number;
  readonly endTime: number;
  readonly attestationId: string;
}

export const STORED_DELEGATION_ROW = row<StoredDelegation>({
  position: integer,
  chainId: text,
  id: text,
  parentId: text,
  revocationId: text,
  rootId: text,
  from: text,
  to: text,
  organization: text,
  contractId: text,
  depth: integer,
  state: oneOf("active", "completed", "failed", "revoked"),
  createTime: integer,
  expireTime: integer,
  endTime: integer,
  attestationId: text,
  subjectIssuer: text,
  subjectId: text,
  subjectPrincipal: text,
});

/** The filter of a list of delegations. An undefined member matches all delegations. */
export interface DelegationFilter {
  readonly principal: string | undefined;
  readonly contractId: string | undefined;
  readonly state: DelegationState | undefined;
}

const MEMBERS = `position, chain_id AS chainId, delegation_id AS id, parent_delegation_id AS parentId,
  revocation_id AS revocationId, root_id AS rootId, from_principal AS "from", to_principal AS "to",
  organization, contract_id AS contractId, depth, status AS state, create_ms AS createTime, expire_ms AS expireTime,
  end_ms AS endTime, attestation_id AS attestationId, subject_issuer AS subjectIssuer, subject_id AS subjectId,
  subject_principal AS subjectPrincipal`;

/**
 * Records the delegations of a chain for a caller. Recorded delegations stay unchanged.
 *
 * @param caller the caller's organization owns new delegations; the caller's subject is stored with a new root
 */
export async function recordLinks(
  tx: WriteTx,
  links: readonly Link[],
  caller: Owned & { readonly subject?: Subject | undefined },
  now: number,
): Promise<void> {
  const ids = links.map(({ block }) => block.revocationId);
  const last = await tx.get(LAST_ROW, "SELECT MAX(position) AS last FROM delegations");
  const owners = await ownersOf(tx, links);
  let position = last?.last ?? 0;
  let above: Owned | undefined;
  let subject = caller.subject ?? NO_SUBJECT;
  for (const [level, link] of links.entries()) {
    const { chainId, parentChainId, parentDelegationId, depth, block, document } = link;
    const { delegationId, revocationId, signer, delegatee, contractId, expiresAt } = block;
    const recorded = owners.get(chainId);
    const organization = recorded?.organization ?? owningOrganization(caller, above);
    subject = recorded ?? subject;
    above = { organization };
    const { changes } = await tx.run(
      `INSERT INTO delegations (position, chain_id, parent_chain_id, delegation_id, parent_delegation_id, revocation_id,
         root_id, from_principal, to_principal, organization, contract_id, depth, status, create_ms, expire_ms, end_ms,
         attestation_id, block, subject_issuer, subject_id, subject_principal)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'active', ?, ?, 0, '', ?, ?, ?, ?) ON CONFLICT (chain_id) DO NOTHING`,
      [
        ...[
          position + 1,
          chainId,
          parentChainId,
          delegationId,
          parentDelegationId,
          revocationId,
          ids[0] ?? "",
        ],
        ...[signer, delegatee, organization, contractId, depth, now, expiresAt, document],
        ...[subject.subjectIssuer, subject.subjectId, subject.subjectPrincipal],
      ],
    );
    if (changes === 0) continue;
    position++;
    for (const id of ids.slice(0, level + 1)) {
      await tx.run("INSERT INTO delegation_blocks (revocation_id, position) VALUES (?, ?)", [id, position]);
    }
  }
}

/** Returns the owner and the subject of each recorded link, by chain id. Links that are not recorded are absent. */
async function ownersOf(tx: ReadTx, links: readonly Link[]): Promise<ReadonlyMap<string, Owned & Subject>> {
  const ids = links.map(({ chainId }) => chainId);
  const rows = await tx.all(
    OWNER_ROW,
    `SELECT chain_id, organization, subject_issuer, subject_id, subject_principal FROM delegations WHERE chain_id IN (${ids.map(() => "?").join(", ")})`,
    ids,
  );
  return new Map(
    rows.map(({ chain_id, organization, subject_issuer, subject_id, subject_principal }) => [
      chain_id,
      {
        organization,
        subjectIssuer: subject_issuer,
        subjectId: subject_id,
        subjectPrincipal: subject_principal,
      },
    ]),
  );
}

/**
 * Returns the blocks of delegations as canonical JSON, by chain id. The text is empty if the store has no content for
 * the block.
 */
export async function readBlocks(
  tx: ReadTx,
  chainIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (chainIds.length === 0) return new Map();
  const rows = await tx.all(
    BLOCK_ROW,
    `SELECT chain_id AS chainId, block FROM delegations WHERE chain_id IN (${chainIds.map(() => "?").join(", ")})`,
    chainIds,
  );
  return new Map(rows.map(({ chainId, block }) => [chainId, block]));
}

/**
 * Returns the delegations with an id, in the order of recording. With a revocation id, returns only the delegations of
 * that block.
 */
export async function findDelegations(
  tx: ReadTx,
  { id, revocationId }: { id: string; revocationId: string },
  limit: number,
): Promise<StoredDelegation[]> {
  const [where, params] = revocationId === "" ? ["", []] : ["AND revocation_id = ?", [revocationId]];
  return tx.all(
    STORED_DELEGATION_ROW,
    `SELECT ${MEMBERS} FROM delegations WHERE delegation_id = ? ${where} ORDER BY position LIMIT ?`,
    [id, ...params, limit],
  );
}

/** Returns a delegation and its ancestors, root first; empty for an unknown delegation. */
export async function readChain(tx: ReadTx, chainId: string): Promise<StoredDelegation[]> {
  return tx.all(
    STORED_DELEGATION_ROW,
    `WITH RECURSIVE above (link) AS (
       SELECT chain_id FROM delegations WHERE chain_id = ?
       UNION
       SELECT parent_chain_id FROM delegations JOIN above ON chain_id = link WHERE parent_chain_id <> ''
     )
     SELECT ${MEMBERS} FROM above JOIN delegations ON chain_id = link ORDER BY depth`,
    [chainId],
  );
}

/** Returns delegations after a position, in the order of recording. */
export async function listDelegations(
  tx: ReadTx,
  { principal, contractId, state }: DelegationFilter,
  after: number,
  limit: number,
): Promise<StoredDelegation[]> {
  const conditions = ["position > ?"];
  const params: SqlValue[] = [after];
  for (const [column, value] of [
    ["contract_id", contractId],
    ["status", state],
  ] as const) {
    if (value === undefined) continue;
    conditions.push(`${column} = ?`);
    params.push(value);
  }
  const select = (more: string) =>
    `SELECT ${MEMBERS} FROM delegations WHERE ${more}${conditions.join(" AND ")} ORDER BY position LIMIT ?`;
  if (principal === undefined) return tx.all(STORED_DELEGATION_ROW, select(""), [...params, limit]);
  // Each half of the UNION uses an index in the order of the result. A single SELECT with OR would use no index.
  return tx.all(
    STORED_DELEGATION_ROW,
    `SELECT * FROM (SELECT * FROM (${select("from_principal = ? AND ")}) AS given
       UNION SELECT * FROM (${select("to_principal = ? AND ")}) AS taken) AS either ORDER BY position LIMIT ?`,
    [principal, ...params, limit, principal, ...params, limit, limit],
  );
}

/** Records the end of a delegation. */
export async function endDelegation(
  tx: WriteTx,
  position: number,
  { state, attestationId }: End,
  now: number,
) {
  await tx.run("UPDATE delegations SET status = ?, attestation_id = ?, end_ms = ? WHERE position = ?", [
    ...[state, attestationId, now, position],
  ]);
}

/** Marks the active delegations of one block as revoked. */
export async function revokeDelegations(tx: WriteTx, revocationId: string, now: number): Promise<void> {
  await tx.run(
    "UPDATE delegations SET status = 'revoked', end_ms = ? WHERE revocation_id = ? AND status = 'active'",
    [now, revocationId],
  );
}

/** Records that delegations below a revoked block must be marked as revoked. `continueCascade` then marks them. */
export async function beginCascade(tx: WriteTx, revocationId: string): Promise<void> {
  await tx.run(
    `INSERT INTO cascades (revocation_id, after_position) VALUES (?, 0)
     ON CONFLICT (revocation_id) DO UPDATE SET after_position = 0`,
    [revocationId],
  );
}

/**
 * Marks at most `limit` delegations below a revoked block as revoked. Returns true if more remain, also below other
 * blocks.
 */
export async function continueCascade(tx: WriteTx, limit: number, now: number): Promise<boolean> {
  const cascade = await tx.get(
    REVOCATION_ID_AFTER_POSITION_ROW,
    "SELECT revocation_id, after_position FROM cascades ORDER BY revocation_id LIMIT 1",
  );
  if (cascade === undefined) return false;
  const { revocation_id: id, after_position: after } = cascade;
  const batch = await tx.all(
    POSITION_ROW,
    "SELECT position FROM delegation_blocks WHERE revocation_id = ? AND position > ? ORDER BY position LIMIT ?",
    [id, after, limit],
  );
  const last = batch.at(-1)?.position ?? after;
  await tx.run(
    `UPDATE delegations SET status = 'revoked', end_ms = ? WHERE status = 'active' AND position IN
       (SELECT position FROM delegation_blocks WHERE revocation_id = ? AND position > ? AND position <= ?)`,
    [now, id, after, last],
  );
  if (batch.length < limit) await tx.run("DELETE FROM cascades WHERE revocation_id = ?", [id]);
  else await tx.run("UPDATE cascades SET after_position = ? WHERE revocation_id = ?", [last, id]);
  return (await tx.get(FOUND, "SELECT 1 AS found FROM cascades LIMIT 1")) !== undefined;
}

/** Deletes delegations whose authority expired before a time; returns their number. */
export async function forgetDelegations(tx: WriteTx, before: number, limit: number): Promise<number> {
  const old = await tx.all(
    POSITION_ROW,
    "SELECT position FROM delegations WHERE expire_ms < ? ORDER BY expire_ms LIMIT ?",
    [before, limit],
  );
  for (const { position } of old) {
    await tx.run("DELETE FROM delegation_blocks WHERE position = ?", [position]);
    await tx.run("DELETE FROM delegations WHERE position = ?", [position]);
  }
  return old.length;
}
