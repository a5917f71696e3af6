import type { PagePosition } from "@depute/core";
import {
  integer,
  nullable,
  oneOf,
  type ReadTx,
  type RowOf,
  row,
  type SqlValue,
  text,
  type WriteTx,
} from "@depute/store";
import {
  type ContentReference,
  nextChange,
  type Reader,
  type Review,
  type ReviewerRole,
  type ReviewKind,
  type Verdict,
} from "../rules/review.ts";
import { positionParams } from "./documents.ts";

const CONTENT_ROW = row({ content: nullable(text) });
const EARLIEST_ROW = row({ at: nullable(integer) });
const COUNT_ROW = row({ reviews: integer });

/** A review, and the fields that only the store needs. */
export interface StoredReview extends Review {
  requestId: string;
  /** Digest of the request that created the review, without its request id. */
  digest: string;
}

const ROW = row({
  id: text,
  kind: oneOf<ReviewKind>("human_review", "oversight", "start_approval", "grant"),
  creator: text,
  organization: text,
  requestId: text,
  digest: text,
  subject: text,
  title: text,
  contentReference: nullable(text),
  author: text,
  reviewers: text,
  escalationReviewers: text,
  reviewerRoles: text,
  escalationTime: integer,
  deadline: integer,
  createTime: integer,
  decision: nullable(oneOf<Verdict | "withdrawn">("approved", "changes_requested", "rejected", "withdrawn")),
  decidedBy: nullable(text),
  reason: nullable(text),
  decideTime: nullable(integer),
});
type Row = RowOf<typeof ROW>;

const COLUMNS = `reviews.id, kind, creator, organization, request_id AS "requestId", digest, subject, title,
  content_reference AS "contentReference", author, reviewers,
  escalation_reviewers AS "escalationReviewers", reviewer_roles AS "reviewerRoles", escalation_ms AS "escalationTime",
  deadline_ms AS "deadline", reviews.create_ms AS "createTime", decision, decided_by AS "decidedBy", reason,
  decide_ms AS "decideTime"`;

export async function getReview(tx: ReadTx, id: string): Promise<StoredReview | undefined> {
  const row = await tx.get(ROW, `SELECT ${COLUMNS} FROM reviews WHERE id = ?`, [id]);
  return row === undefined ? undefined : fromRow(row);
}

/** Returns the JSON of the content under review; undefined if the store has no content for the review. */
export async function getReviewContent(tx: ReadTx, id: string): Promise<string | undefined> {
  const row = await tx.get(CONTENT_ROW, "SELECT content FROM reviews WHERE id = ?", [id]);
  return row?.content ?? undefined;
}

/** Returns the review that this creator's request created; undefined for a new request. */
export async function getRequestedReview(
  tx: ReadTx,
  creator: string,
  requestId: string,
): Promise<StoredReview | undefined> {
  const row = await tx.get(ROW, `SELECT ${COLUMNS} FROM reviews WHERE creator = ? AND request_id = ?`, [
    creator,
    requestId,
  ]);
  return row === undefined ? undefined : fromRow(row);
}

export async function insertReview(
  tx: WriteTx,
  review: StoredReview,
  content: string | undefined,
): Promise<void> {
  await tx.run(
    `INSERT INTO reviews (id, kind, creator, organization, request_id, digest, subject, title, content, content_reference, author,
       reviewers, escalation_reviewers, reviewer_roles, escalation_ms, deadline_ms, create_ms, due_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [
      review.id,
      review.kind,
      review.creator,
      review.organization,
      review.requestId,
      review.digest,
      review.subject,
      review.title,
      content ?? null,
      review.contentReference === undefined ? null : JSON.stringify(review.contentReference),
      review.author,
      JSON.stringify(review.reviewers),
      JSON.stringify(review.escalationReviewers),
      JSON.stringify(review.reviewerRoles ?? []),
      review.escalationTime,
      review.deadline,
      review.createTime,
      nextChange(review) ?? null,
    ],
  );
  const { creator, reviewers, escalationReviewers, reviewerRoles = [] } = review;
  const readers = [creator, ...reviewers, ...escalationReviewers, ...reviewerRoles.map(readerOfRole)];
  for (const principal of new Set(readers)) {
    await tx.run("INSERT INTO review_readers (principal, review_id, create_ms) VALUES (?, ?, ?)", [
      principal,
      review.id,
      review.createTime,
    ]);
  }
  await appendChange(tx, review.id);
}

export async function updateReview(tx: WriteTx, review: Review): Promise<void> {
  await tx.run(
    "UPDATE reviews SET decision = ?, decided_by = ?, reason = ?, decide_ms = ?, due_ms = NULL WHERE id = ?",
    [
      review.decision ?? null,
      review.decidedBy ?? null,
      review.reason ?? null,
      review.decideTime ?? null,
      review.id,
    ],
  );
  await appendChange(tx, review.id);
}

/** Returns reviews whose escalation or deadline has come, the longest overdue first. */
export async function dueReviews(tx: ReadTx, now: number, limit: number): Promise<StoredReview[]> {
  const rows = await tx.all(
    ROW,
    `SELECT ${COLUMNS} FROM reviews WHERE due_ms IS NOT NULL AND due_ms <= ? ORDER BY due_ms, id LIMIT ?`,
    [now, limit],
  );
  return rows.map(fromRow);
}

/** Records that a review has escalated or timed out, and stores the time of the review's next change. */
export async function recordTimeChange(tx: WriteTx, review: Review, now: number): Promise<void> {
  await tx.run("UPDATE reviews SET due_ms = ? WHERE id = ?", [nextChange(review, now) ?? null, review.id]);
  await appendChange(tx, review.id);
}

/** Returns the time of the earliest escalation or deadline in epoch milliseconds; undefined without one. */
export async function earliestDue(tx: ReadTx): Promise<number | undefined> {
  const row = await tx.get(EARLIEST_ROW, "SELECT MIN(due_ms) AS at FROM reviews WHERE due_ms IS NOT NULL");
  return row?.at ?? undefined;
}

/**
 * Returns the name under which a role is among the readers of a review. If a principal had this name, the index would
 * find the review, but the rules would still hide the review.
 */
function readerOfRole(role: string): string {
  return `role:${role}`;
}

/** The position before the first review of a list. */
const START: readonly SqlValue[] = [Number.MIN_SAFE_INTEGER, ""];

/** Returns the reviews of a subject, oldest first, whoever may read them. */
export async function listReviewsOf(
  tx: ReadTx,
  subject: string,
  size: number,
  after: PagePosition | undefined,
): Promise<StoredReview[]> {
  const rows = await tx.all(
    ROW,
    `SELECT ${COLUMNS} FROM reviews WHERE subject = ? AND (create_ms, id) > (?, ?)
     ORDER BY create_ms, id LIMIT ?`,
    [subject, ...(positionParams(after) ?? START), size],
  );
  return rows.map(fromRow);
}

/**
 * Returns reviews that a reader created, or may decide now or after the escalation, oldest first. If the reader is
 * undefined, returns all reviews.
 */
export async function listReviews(
  tx: ReadTx,
  reader: Reader | undefined,
  size: number,
  after: PagePosition | undefined,
): Promise<StoredReview[]> {
  const position = positionParams(after) ?? START;
  if (reader === undefined) {
    const all = await tx.all(
      ROW,
      `SELECT ${COLUMNS} FROM reviews WHERE (create_ms, id) > (?, ?) ORDER BY create_ms, id LIMIT ?`,
      [...position, size],
    );
    return all.map(fromRow);
  }
  const [principal, operators] = [reader.principal, readerOfRole("operator")];
  // The index can have two entries of a reader for one review: under the principal, and under the role.
  const isOperator = reader.roles?.includes("operator") === true;
  const rows = await tx.all(
    ROW,
    `SELECT ${COLUMNS} FROM (
       SELECT ${isOperator ? "DISTINCT" : ""} review_id, create_ms FROM review_readers
       WHERE principal ${isOperator ? "IN (?, ?)" : "= ?"} AND (create_ms, review_id) > (?, ?)
       ORDER BY create_ms, review_id LIMIT ?) AS readers
     JOIN reviews ON reviews.id = readers.review_id ORDER BY readers.create_ms, readers.review_id`,
    [principal, ...(isOperator ? [operators] : []), ...position, size],
  );
  return rows.map(fromRow);
}

export interface ReviewChange {
  sequence: number;
  reviewId: string;
}

const CHANGE_ROW = row<ReviewChange>({ sequence: integer, reviewId: text });

export function listChanges(tx: ReadTx, after: number, size: number): Promise<ReviewChange[]> {
  const params: SqlValue[] = [after, size];
  return tx.all(
    CHANGE_ROW,
    `SELECT sequence, review_id AS "reviewId" FROM review_changes WHERE sequence > ? ORDER BY sequence LIMIT ?`,
    params,
  );
}

export async function appendChange(tx: WriteTx, reviewId: string): Promise<void> {
  await tx.run(
    `INSERT INTO review_changes (sequence, review_id)
     SELECT MAX(sequence) + 1, ? FROM (SELECT COALESCE(MAX(sequence), 0) AS sequence FROM review_changes
       UNION ALL SELECT sequence FROM review_change_floor) AS used`,
    [reviewId],
  );
}

function fromRow(row: Row): StoredReview {
  return {
    ...row,
    contentReference:
      row.contentReference === null ? undefined : (JSON.parse(row.contentReference) as ContentReference),
    reviewers: JSON.parse(row.reviewers) as string[],
    escalationReviewers: JSON.parse(row.escalationReviewers) as string[],
    reviewerRoles: JSON.parse(row.reviewerRoles) as ReviewerRole[],
    decision: row.decision ?? undefined,
    decidedBy: row.decidedBy ?? undefined,
    reason: row.reason ?? undefined,
    decideTime: row.decideTime ?? undefined,
  };
}

/** Maximum number of open reviews that a metric counts. */
const MAX_COUNTED = 100_000;

/** Counts the open reviews. Stops at MAX_COUNTED. */
export async function countOpenReviews(tx: ReadTx): Promise<number> {
  const row = await tx.get(
    COUNT_ROW,
    "SELECT count(*) AS reviews FROM (SELECT id FROM reviews WHERE due_ms IS NOT NULL LIMIT ?) AS open_reviews",
    [MAX_COUNTED],
  );
  return row?.reviews ?? 0;
}
