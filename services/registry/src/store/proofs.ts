import {
  FOUND,
  integer,
  isPurged,
  type ReadTx,
  type RowOf,
  row,
  type SqlValue,
  text,
  type WriteTx,
} from "@depute/store";

const ORGANIZATION_ROW = row({ organization: text });
const N_ROW = row({ n: integer });

/** An operator's proof that a principal acts for an organization. Times are epoch milliseconds. */
export interface StoredProof {
  readonly id: string;
  readonly organization: string;
  readonly principal: string;
  readonly provenBy: string;
  readonly createTime: number;
  /** Time of the revocation; undefined for a proof in force. */
  readonly revokeTime: number | undefined;
  /** The principal that revoked the proof; empty for a proof in force. */
  readonly revokedBy: string;
}

const PROOF_ROW = row({
  id: text,
  organization: text,
  principal: text,
  proven_by: text,
  create_time: integer,
  revoke_time: integer,
  revoked_by: text,
});
type ProofRow = RowOf<typeof PROOF_ROW>;

const SELECT =
  "SELECT id, organization, principal, proven_by, create_time, revoke_time, revoked_by FROM organization_proofs";

/** The filter of a list of proofs. */
export interface ProofFilter {
  /** The organization of the proofs; empty for all. */
  readonly organization: string;
  /** The principal of the proofs; empty for all. */
  readonly principal: string;
  readonly includeRevoked: boolean;
}

export async function findProof(tx: ReadTx, id: string): Promise<StoredProof | undefined> {
  const row = await tx.get(PROOF_ROW, `${SELECT} WHERE id = ?`, [id]);
  return row && toProof(row);
}

/** Returns the principal's proof in force for an organization; undefined if there is none. */
export async function findProofOf(
  tx: ReadTx,
  organization: string,
  principal: string,
): Promise<StoredProof | undefined> {
  const row = await tx.get(
    PROOF_ROW,
    `${SELECT} WHERE organization = ? AND principal = ? AND revoke_time = 0`,
    [organization, principal],
  );
  return row && toProof(row);
}

/** Whether an organization ever had a proof, including proofs that a purge deleted. */
export async function wasProven(tx: ReadTx, organization: string): Promise<boolean> {
  const row = await tx.get(FOUND, "SELECT 1 FROM organization_proofs WHERE organization = ? LIMIT 1", [
    organization,
  ]);
  return row !== undefined || isPurged(tx, "organization", organization);
}

/** Returns proofs with ids below `before`, newest first. Ids ascend with time. */
export async function listProofs(
  tx: ReadTx,
  { organization, principal, includeRevoked }: ProofFilter,
  before: string,
  limit: number,
): Promise<StoredProof[]> {
  const conditions: string[] = [];
  const params: SqlValue[] = [];
  const where = (condition: string, value: SqlValue) => {
    conditions.push(condition);
    params.push(value);
  };
  if (before !== "") where("id < ?", before);
  if (organization !== "") where("organization = ?", organization);
  if (principal !== "") where("principal = ?", principal);
  if (!includeRevoked) where("revoke_time = ?", 0);
  const filter = conditions.length === 0 ? "" : ` WHERE ${conditions.join(" AND ")}`;
  const rows = await tx.all(PROOF_ROW, `${SELECT}${filter} ORDER BY id DESC LIMIT ?`, [...params, limit]);
  return rows.map(toProof);
}

/** Returns the organizations for which a principal has proofs in force, in the order of their names. */
export async function provenOrganizations(tx: ReadTx, principal: string): Promise<string[]> {
  if (principal === "") return [];
  const rows = await tx.all(
    ORGANIZATION_ROW,
    "SELECT organization FROM organization_proofs WHERE principal = ? AND revoke_time = 0 ORDER BY organization",
    [principal],
  );
  return rows.map(({ organization }) => organization);
}

/** Counts an organization's proofs in force, up to `limit`. */
export async function countProofs(tx: ReadTx, organization: string, limit: number): Promise<number> {
  const row = await tx.get(
    N_ROW,
    `SELECT COUNT(*) AS n FROM (SELECT 1 FROM organization_proofs WHERE organization = ? AND revoke_time = 0 LIMIT ?)
       AS counted`,
    [organization, limit],
  );
  return row?.n ?? 0;
}

export async function addProof(tx: WriteTx, proof: StoredProof): Promise<void> {
  await tx.run(
    `INSERT INTO organization_proofs
       (id, organization, principal, proven_by, create_time, revoke_time, revoked_by) VALUES (?, ?, ?, ?, ?, ?, ?)`,
    [
      proof.id,
      proof.organization,
      proof.principal,
      proof.provenBy,
      proof.createTime,
      proof.revokeTime ?? 0,
      proof.revokedBy,
    ],
  );
}

export async function endProof(tx: WriteTx, id: string, revokedBy: string, now: number): Promise<void> {
  await tx.run("UPDATE organization_proofs SET revoke_time = ?, revoked_by = ? WHERE id = ?", [
    now,
    revokedBy,
    id,
  ]);
}

function toProof(row: ProofRow): StoredProof {
  return {
    id: row.id,
    organization: row.organization,
    principal: row.principal,
    provenBy: row.proven_by,
    createTime: row.create_time,
    revokeTime: row.revoke_time === 0 ? undefined : row.revoke_time,
    revokedBy: row.revoked_by,
  };
}
