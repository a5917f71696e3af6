import { integer, type ReadTx, type RowOf, row, text, type WriteTx } from "@depute/store";

const N_ROW = row({ n: integer });

/** A member of an organization. The time is epoch milliseconds. */
export interface StoredMember {
  readonly principal: string;
  readonly admittedBy: string;
  readonly createTime: number;
}

const MEMBER_ROW = row({ principal: text, admitted_by: text, create_time: integer });
type MemberRow = RowOf<typeof MEMBER_ROW>;

const COLUMNS = "principal, admitted_by, create_time";

/** Counts the members of an organization, up to `limit`. */
export async function countMembers(tx: ReadTx, organization: string, limit: number): Promise<number> {
  const row = await tx.get(
    N_ROW,
    "SELECT COUNT(*) AS n FROM (SELECT 1 FROM members WHERE organization = ? LIMIT ?) AS counted",
    [organization, limit],
  );
  return row?.n ?? 0;
}

export async function findMember(
  tx: ReadTx,
  organization: string,
  principal: string,
): Promise<StoredMember | undefined> {
  const row = await tx.get(
    MEMBER_ROW,
    `SELECT ${COLUMNS} FROM members WHERE organization = ? AND principal = ?`,
    [organization, principal],
  );
  return row && toMember(row);
}

/** Returns members in the order of their principals, starting after `after`. */
export async function listMembers(
  tx: ReadTx,
  organization: string,
  after: string,
  limit: number,
): Promise<StoredMember[]> {
  const rows = await tx.all(
    MEMBER_ROW,
    `SELECT ${COLUMNS} FROM members WHERE organization = ? AND principal > ? ORDER BY principal LIMIT ?`,
    [organization, after, limit],
  );
  return rows.map(toMember);
}

export async function addMember(tx: WriteTx, organization: string, member: StoredMember): Promise<void> {
  await tx.run(
    "INSERT INTO members (organization, principal, admitted_by, create_time) VALUES (?, ?, ?, ?)",
    [organization, member.principal, member.admittedBy, member.createTime],
  );
}

export async function removeMember(tx: WriteTx, organization: string, principal: string): Promise<void> {
  await tx.run("DELETE FROM members WHERE organization = ? AND principal = ?", [organization, principal]);
}

/** Removes all members of an organization. */
export async function removeMembers(tx: WriteTx, organization: string): Promise<void> {
  await tx.run("DELETE FROM members WHERE organization = ?", [organization]);
}

/** Replaces one principal by another, both as a member and as the principal that admitted members. */
export async function replaceMember(
  tx: WriteTx,
  organization: string,
  replaced: string,
  member: StoredMember,
): Promise<void> {
  await removeMember(tx, organization, replaced);
  await removeMember(tx, organization, member.principal);
  await tx.run("UPDATE members SET admitted_by = ? WHERE organization = ? AND admitted_by = ?", [
    member.principal,
    organization,
    replaced,
  ]);
  await addMember(tx, organization, member);
}

/**
 * Removes a member and, recursively, the members that this member admitted. An admitted member with a proof in force
 * stays.
 */
export async function removeAdmittedBy(tx: WriteTx, organization: string, principal: string): Promise<void> {
  await tx.run(
    `WITH RECURSIVE gone (principal) AS (
       SELECT principal FROM members WHERE organization = ? AND principal = ?
       UNION
       SELECT m.principal FROM members m JOIN gone g ON m.admitted_by = g.principal
       WHERE m.organization = ? AND NOT EXISTS (SELECT 1 FROM organization_proofs p
         WHERE p.organization = m.organization AND p.principal = m.principal AND p.revoke_time = 0))
     DELETE FROM members WHERE organization = ? AND principal IN (SELECT principal FROM gone)`,
    [organization, principal, organization, organization],
  );
}

function toMember(row: MemberRow): StoredMember {
  return { principal: row.principal, admittedBy: row.admitted_by, createTime: row.create_time };
}
