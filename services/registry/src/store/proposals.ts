import { fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type Proposal,
  ProposalSchema,
  ProposalState,
} from "@depute/contracts/depute/registry/v1/proposal_service_pb";
import {
  bytes,
  integer,
  memberOf,
  oneOf,
  type ReadTx,
  type RowOf,
  row,
  type SqlValue,
  text,
  type WriteTx,
} from "@depute/store";
import {
  DAY_MS,
  MAX_PENDING,
  MAX_PENDING_OF_ALL,
  MAX_PER_DAY,
  type ProposalCounts,
} from "../rules/proposal.ts";

/** Milliseconds for which the store keeps an ended proposal. */
const RETENTION_MS = 90 * DAY_MS;
/** Maximum number of ended proposals that one transaction deletes. */
const PURGE_BATCH = 100;

/** The table of proposals. Times are epoch milliseconds. */
export const PROPOSALS = `
      CREATE TABLE proposals (
        id TEXT PRIMARY KEY,             -- a UUIDv7, so that ids ascend with time; also the id of the review
        proposer TEXT NOT NULL,
        organization TEXT NOT NULL,      -- that owns the proposal; empty for none
        state BIGINT NOT NULL,           -- ProposalState
        create_time BIGINT NOT NULL,
        expire_time BIGINT NOT NULL,
        end_time BIGINT NOT NULL,        -- 0 while it is pending
        decided_by TEXT NOT NULL,
        reason TEXT NOT NULL,
        reviewers TEXT NOT NULL,         -- JSON array
        base_digest TEXT NOT NULL,       -- of the agent's record at the proposal; empty for other grants
        owed TEXT NOT NULL,              -- the call that the verifier has yet to get: create, withdraw, or empty
        record BYTEA NOT NULL            -- Proposal: grant, justification and widenings
      );
      CREATE INDEX proposals_by_proposer ON proposals (proposer, create_time);
      CREATE INDEX proposals_pending ON proposals (proposer) WHERE end_time = 0;
      CREATE INDEX proposals_ended ON proposals (end_time) WHERE end_time > 0;
      CREATE INDEX proposals_owed ON proposals (id) WHERE owed <> ''`;

/** The call to the verifier service that the outbox still has to make for a proposal; empty for none. */
export type OwedCall = "create" | "withdraw" | "";

/** A stored proposal. Times are epoch milliseconds. */
export interface StoredProposal {
  readonly id: string;
  readonly proposer: string;
  readonly organization: string;
  readonly state: ProposalState;
  readonly createTime: number;
  readonly expireTime: number;
  /** The time at which the proposal ended; 0 while it is pending. */
  readonly endTime: number;
  readonly decidedBy: string;
  readonly reason: string;
  readonly reviewers: readonly string[];
  /** The digest of the agent's record when the manifest was proposed; empty for other grants. */
  readonly baseDigest: string;
  readonly owed: OwedCall;
  /** The proposed grant, the justification and the widenings. */
  readonly record: Proposal;
}

const ROW = row({
  id: text,
  proposer: text,
  organization: text,
  state: memberOf(ProposalState),
  createTime: integer,
  expireTime: integer,
  endTime: integer,
  decidedBy: text,
  reason: text,
  reviewers: text,
  baseDigest: text,
  owed: oneOf<OwedCall>("create", "withdraw", ""),
  record: bytes,
});
const N_ROW = row({ n: integer });

const COLUMNS = `id, proposer, organization, state, create_time AS "createTime", expire_time AS "expireTime",
  end_time AS "endTime", decided_by AS "decidedBy", reason, reviewers, base_digest AS "baseDigest", owed, record`;

export async function insertProposal(tx: WriteTx, proposal: StoredProposal): Promise<void> {
  await tx.run(
    `INSERT INTO proposals (id, proposer, organization, state, create_time, expire_time, end_time, decided_by, reason,
       reviewers, base_digest, owed, record) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [
      proposal.id,
      proposal.proposer,
      proposal.organization,
      proposal.state,
      proposal.createTime,
      proposal.expireTime,
      proposal.endTime,
      proposal.decidedBy,
      proposal.reason,
      JSON.stringify(proposal.reviewers),
      proposal.baseDigest,
      proposal.owed,
      toBinary(ProposalSchema, proposal.record),
    ],
  );
}

export async function findProposal(tx: ReadTx, id: string): Promise<StoredProposal | undefined> {
  const row = await tx.get(ROW, `SELECT ${COLUMNS} FROM proposals WHERE id = ?`, [id]);
  return row && fromRow(row);
}

/** The filter of a list of proposals. An absent member matches all. */
export interface ProposalFilter {
  readonly proposer?: string | undefined;
  readonly state?: ProposalState | undefined;
}

/** Returns proposals with ids below `before`, newest first. If `before` is empty, begins with the newest proposal. */
export async function listProposals(
  tx: ReadTx,
  { proposer, state }: ProposalFilter,
  before: string,
  limit: number,
): Promise<StoredProposal[]> {
  const conditions: [sql: string, value: SqlValue][] = [];
  if (before !== "") conditions.push(["id < ?", before]);
  if (proposer !== undefined) conditions.push(["proposer = ?", proposer]);
  if (state !== undefined) conditions.push(["state = ?", state]);
  const where = conditions.length === 0 ? "" : `WHERE ${conditions.map(([sql]) => sql).join(" AND ")}`;
  const rows = await tx.all(ROW, `SELECT ${COLUMNS} FROM proposals ${where} ORDER BY id DESC LIMIT ?`, [
    ...conditions.map(([, value]) => value),
    limit,
  ]);
  return rows.map(fromRow);
}

/** Returns the counts of proposals that decide whether a proposer may create one more. */
export async function countProposals(tx: ReadTx, proposer: string, now: number): Promise<ProposalCounts> {
  const count = async (where: string, params: readonly SqlValue[], limit: number) => {
    const sql = `SELECT COUNT(*) AS n FROM (SELECT 1 FROM proposals WHERE ${where} LIMIT ?) AS counted`;
    return (await tx.get(N_ROW, sql, [...params, limit]))?.n ?? 0;
  };
  return {
    pending: await count("proposer = ? AND end_time = 0", [proposer], MAX_PENDING),
    today: await count("proposer = ? AND create_time > ?", [proposer, now - DAY_MS], MAX_PER_DAY),
    pendingOfAll: await count("end_time = 0", [], MAX_PENDING_OF_ALL),
  };
}

/** The members of a proposal that its end sets. */
export type ProposalEnd = Pick<StoredProposal, "state" | "decidedBy" | "reason" | "endTime" | "owed">;

export async function endProposal(tx: WriteTx, id: string, end: ProposalEnd): Promise<void> {
  await tx.run(
    "UPDATE proposals SET state = ?, decided_by = ?, reason = ?, end_time = ?, owed = ? WHERE id = ?",
    [end.state, end.decidedBy, end.reason, end.endTime, end.owed, id],
  );
}

/** Returns proposals whose call to the verifier service is not delivered yet, oldest first. */
export async function owingProposals(tx: ReadTx, limit: number): Promise<StoredProposal[]> {
  const rows = await tx.all(ROW, `SELECT ${COLUMNS} FROM proposals WHERE owed <> '' ORDER BY id LIMIT ?`, [
    limit,
  ]);
  return rows.map(fromRow);
}

/** Records that the verifier service has received a call, unless the proposal needs another call by now. */
export async function settleCall(tx: WriteTx, { id, owed }: StoredProposal): Promise<void> {
  await tx.run("UPDATE proposals SET owed = '' WHERE id = ? AND owed = ?", [id, owed]);
}

/** Records the deadline of the proposal's review. */
export async function noteDeadline(tx: WriteTx, id: string, expireTime: number): Promise<void> {
  await tx.run("UPDATE proposals SET expire_time = ? WHERE id = ? AND end_time = 0", [expireTime, id]);
}

/**
 * Deletes at most PURGE_BATCH proposals that ended more than RETENTION_MS ago and need no call to the verifier service.
 * Each creation of a proposal calls this function, so the table stays bounded.
 */
export async function purgeProposals(tx: WriteTx, now: number): Promise<void> {
  await tx.run(
    `DELETE FROM proposals WHERE owed = '' AND id IN
       (SELECT id FROM proposals WHERE end_time > 0 AND end_time < ? ORDER BY end_time LIMIT ?)`,
    [now - RETENTION_MS, PURGE_BATCH],
  );
}

const ENDED_ROW = row({ id: text, endTime: integer, owed: oneOf<OwedCall>("create", "withdraw", "") });

/** Returns proposals that an organization owns. Those that need no call to the verifier service come first. */
export async function proposalsOf(
  tx: ReadTx,
  organization: string,
  limit: number,
): Promise<RowOf<typeof ENDED_ROW>[]> {
  return tx.all(
    ENDED_ROW,
    `SELECT id, end_time AS "endTime", owed FROM proposals WHERE organization = ? AND organization <> ''
     ORDER BY owed, id LIMIT ?`,
    [organization, Math.max(0, limit)],
  );
}

export async function deleteProposal(tx: WriteTx, id: string): Promise<void> {
  await tx.run("DELETE FROM proposals WHERE id = ?", [id]);
}

function fromRow(row: RowOf<typeof ROW>): StoredProposal {
  return {
    ...row,
    reviewers: JSON.parse(row.reviewers) as string[],
    record: fromBinary(ProposalSchema, row.record),
  };
}
