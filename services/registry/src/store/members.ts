import type { ReadTx, WriteTx } from "@depute/store";

/** A principal of an organization; the time is epoch ms. */
export interface StoredMember {
  readonly principal: string;
  readonly admittedBy: string;
  readonly createTime: number;
}

interface MemberRow {
  principal: string;
  admitted_by: string;
  create_time: number;
}

const COLUMNS = "principal, admitted_by, create_time";

/** How many members an organization has, counted no further than `limit`. */
export async function countMembers(tx: ReadTx, organization: string, limit: number): Promise<number> {
  const row = await tx.get<{ n: number }>(
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
  const row = await tx.get<MemberRow>(
    `SELECT ${COLUMNS} FROM members WHERE organization = ? AND principal = ?`,
    [organization, principal],
  );
  return row && toMember(row);
}

/** Members in the order of their principals, behind `after`. */
export async function listMembers(
  tx: ReadTx,
  organization: string,
  after: string,
  limit: number,
): Promise<StoredMember[]> {
  const rows = await tx.all<MemberRow>(
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

function toMember(row: MemberRow): StoredMember {
  return { principal: row.principal, admittedBy: row.admitted_by, createTime: row.create_time };
}
