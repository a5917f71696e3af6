import { fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type ExecutionReceipt,
  ExecutionReceiptSchema,
  ExecutionStatus,
} from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import { ExecutionRequestSchema } from "@depute/contracts/agenta/delegation/v0/execution_request_pb";
import { type Offer, OfferSchema } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import { ApprovalState, SettlementState } from "@depute/contracts/depute/tasks/v1/execution_service_pb";
import {
  bytes,
  int64,
  integer,
  memberOf,
  nullable,
  type ReadTx,
  type RowOf,
  row,
  type SqlValue,
  text,
  type WriteTx,
} from "@depute/store";
import type { Load } from "../rules/admission.ts";
import { RATE_WINDOW_MS } from "../rules/admission.ts";
import type { ExecutionRecord } from "../rules/record.ts";
import { IS_OPEN, IS_REJECTED, IS_TAKEN } from "./conditions.ts";

const REQUEST_ID_ROW = row({ request_id: text });
const VERIFY_BY_MS_ROW = row({ verify_by_ms: integer });
const N_ROW = row({ n: integer });
const SPENT_ROW = row({ spent: nullable(int64) });
const LISTED_ROW = row({ request_id: text, create_ms: integer, receipt: bytes });
const OFFER_ROW = row({ offer: bytes });

const ROW = row({
  request: bytes,
  digest: text,
  buyer_principal: text,
  authority: nullable(text),
  organization: text,
  seller_principal: text,
  seller_organization: text,
  task_id: nullable(text),
  status: memberOf(ExecutionStatus),
  approval: memberOf(ApprovalState),
  settlement: memberOf(SettlementState),
  limit_amount: int64,
  final_amount: nullable(int64),
  capture_id: text,
  start_by_ms: integer,
  deadline_ms: integer,
  verify_by_ms: nullable(integer),
  create_ms: integer,
  end_ms: nullable(integer),
  last_number: integer,
});
type Row = RowOf<typeof ROW>;

const COLUMNS =
  "request, digest, buyer_principal, authority, organization, seller_principal, seller_organization, task_id, status, approval, " +
  "settlement, limit_amount, final_amount, capture_id, start_by_ms, deadline_ms, verify_by_ms, create_ms, end_ms, last_number";

async function find(tx: ReadTx, where: string, params: SqlValue[]): Promise<ExecutionRecord | undefined> {
  const row = await tx.get(ROW, `SELECT ${COLUMNS} FROM executions WHERE ${where}`, params);
  return row && toRecord(row);
}

export function findExecution(tx: ReadTx, requestId: string): Promise<ExecutionRecord | undefined> {
  return find(tx, "request_id = ?", [requestId]);
}

/** Finds the execution that a task carries out. */
export function findByTask(tx: ReadTx, taskId: string): Promise<ExecutionRecord | undefined> {
  return find(tx, "task_id = ?", [taskId]);
}

/** Finds a buyer's request by its idempotency key. */
export function findByKey(tx: ReadTx, buyerId: string, key: string): Promise<ExecutionRecord | undefined> {
  return find(tx, "buyer_id = ? AND idempotency_key = ?", [buyerId, key]);
}

/** Finds the execution that a receipt is about. */
export async function findByReceipt(tx: ReadTx, receiptId: string): Promise<ExecutionRecord | undefined> {
  const sql = "SELECT request_id FROM execution_receipts WHERE receipt_id = ?";
  const row = await tx.get(REQUEST_ID_ROW, sql, [receiptId]);
  return row && findExecution(tx, row.request_id);
}

export async function insertExecution(tx: WriteTx, record: ExecutionRecord): Promise<void> {
  const { request } = record;
  await tx.run(
    `INSERT INTO executions (request_id, buyer_id, idempotency_key, digest, buyer_principal, authority, organization,
       seller_id, seller_principal, seller_organization, task_id, offer_id, offer_version, parent_request_id, status, approval,
       settlement, limit_amount, final_amount, capture_id, start_by_ms, deadline_ms, verify_by_ms, create_ms,
       end_ms, last_number, request)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [
      request.requestId,
      request.buyerAgent?.agentId ?? "",
      request.idempotencyKey,
      record.digest,
      record.buyerPrincipal,
      record.authority?.join(",") ?? null,
      record.organization,
      request.sellerAgentId,
      record.sellerPrincipal,
      record.sellerOrganization,
      record.taskId || null,
      request.offerId,
      request.offerVersion,
      request.parentRequestId ?? "",
      record.status,
      record.approval,
      record.settlement,
      record.limit,
      record.finalAmount ?? null,
      record.captureId,
      record.startBy,
      record.deadline,
      record.verifyBy ?? null,
      record.createMs,
      record.endMs ?? null,
      record.lastNumber,
      toBinary(ExecutionRequestSchema, request),
    ],
  );
}

/** Stores the fields of an execution that can change. The request's fields never change. */
export async function updateExecution(tx: WriteTx, record: ExecutionRecord): Promise<void> {
  await tx.run(
    `UPDATE executions SET status = ?, approval = ?, settlement = ?, final_amount = ?, capture_id = ?,
       verify_by_ms = ?, end_ms = ?, last_number = ? WHERE request_id = ?`,
    [
      record.status,
      record.approval,
      record.settlement,
      record.finalAmount ?? null,
      record.captureId,
      record.verifyBy ?? null,
      record.endMs ?? null,
      record.lastNumber,
      record.request.requestId,
    ],
  );
}

/** Returns the request ids of executions whose verification is overdue, the longest overdue first. */
export async function dueExecutions(tx: ReadTx, nowMs: number, limit: number): Promise<string[]> {
  const rows = await tx.all(
    REQUEST_ID_ROW,
    `SELECT request_id FROM executions WHERE verify_by_ms IS NOT NULL AND verify_by_ms <= ?
     ORDER BY verify_by_ms, request_id LIMIT ?`,
    [nowMs, limit],
  );
  return rows.map((row) => row.request_id);
}

/** Returns the next time at which a verification becomes overdue, in epoch milliseconds; undefined for none. */
export async function earliestDue(tx: ReadTx): Promise<number | undefined> {
  const row = await tx.get(
    VERIFY_BY_MS_ROW,
    `SELECT verify_by_ms FROM executions WHERE verify_by_ms IS NOT NULL
     ORDER BY verify_by_ms, request_id LIMIT 1`,
  );
  return row?.verify_by_ms;
}

/** Returns the load of an offer, over all its versions. */
export async function loadOf(tx: ReadTx, offerId: string, nowMs: number): Promise<Load> {
  const open = await tx.get(N_ROW, `SELECT count(*) AS n FROM executions WHERE offer_id = ? AND ${IS_OPEN}`, [
    offerId,
  ]);
  const takenRow = await tx.get(
    N_ROW,
    `SELECT count(*) AS n FROM executions WHERE offer_id = ? AND create_ms > ? AND ${IS_TAKEN}`,
    [offerId, nowMs - RATE_WINDOW_MS],
  );
  return { open: open?.n ?? 0, lastMinute: takenRow?.n ?? 0 };
}

/** Returns the number of a buyer's rejected requests in the store. */
export async function countRejected(tx: ReadTx, buyerId: string): Promise<number> {
  const row = await tx.get(
    N_ROW,
    `SELECT count(*) AS n FROM executions WHERE buyer_id = ? AND ${IS_REJECTED}`,
    [buyerId],
  );
  return row?.n ?? 0;
}

/**
 * Returns the total cost of an execution's child executions, in minor units of the currency. An open child counts with
 * its maximum charge. A child that ended without a charge costs nothing.
 */
export async function spentOnParts(tx: ReadTx, parentRequestId: string): Promise<bigint> {
  const row = await tx.get(
    SPENT_ROW,
    `SELECT sum(CASE WHEN ${IS_OPEN} THEN limit_amount ELSE coalesce(final_amount, 0) END) AS spent
     FROM executions WHERE parent_request_id = ? AND parent_request_id <> ''`,
    [parentRequestId],
  );
  return BigInt(row?.spent ?? 0);
}

export interface ListedExecution {
  readonly requestId: string;
  readonly createMs: number;
  readonly receipt: ExecutionReceipt;
}

/**
 * Returns the newest receipt of each execution that an agent bought or sold, as `party` says, the newest request first.
 */
export async function listExecutions(
  tx: ReadTx,
  party: "buyer_id" | "seller_id",
  agentId: string,
  after: { readonly createMs: number; readonly requestId: string } | undefined,
  limit: number,
): Promise<ListedExecution[]> {
  const rows = await tx.all(
    LISTED_ROW,
    `SELECT e.request_id, e.create_ms, r.receipt FROM executions e
     JOIN execution_receipts r ON r.request_id = e.request_id AND r.number = e.last_number
     WHERE e.${party} = ? ${after === undefined ? "" : "AND (e.create_ms, e.request_id) < (?, ?)"}
     ORDER BY e.create_ms DESC, e.request_id DESC LIMIT ?`,
    [agentId, ...(after === undefined ? [] : [after.createMs, after.requestId]), limit],
  );
  return rows.map((row) => ({
    requestId: row.request_id,
    createMs: row.create_ms,
    receipt: fromBinary(ExecutionReceiptSchema, row.receipt),
  }));
}

/**
 * Stores the version of an offer that a buyer bought. A published version never changes, so the store holds each
 * version once.
 */
export async function insertOffer(tx: WriteTx, offer: Offer): Promise<void> {
  await tx.run(
    `INSERT INTO execution_offers (offer_id, offer_version, offer) VALUES (?, ?, ?)
     ON CONFLICT (offer_id, offer_version) DO NOTHING`,
    [offer.offerId, offer.offerVersion ?? "", toBinary(OfferSchema, offer)],
  );
}

/**
 * Reads the offer of an execution.
 *
 * @throws Error if the offer is missing
 */
export async function readOffer(tx: ReadTx, { request }: ExecutionRecord): Promise<Offer> {
  const row = await tx.get(
    OFFER_ROW,
    "SELECT offer FROM execution_offers WHERE offer_id = ? AND offer_version = ?",
    [request.offerId, request.offerVersion],
  );
  if (row === undefined) throw new Error(`the offer of the execution ${request.requestId} does not exist`);
  return fromBinary(OfferSchema, row.offer);
}

function toRecord(row: Row): ExecutionRecord {
  return {
    request: fromBinary(ExecutionRequestSchema, row.request),
    digest: row.digest,
    buyerPrincipal: row.buyer_principal,
    authority: row.authority === "" ? [] : row.authority?.split(","),
    organization: row.organization,
    sellerPrincipal: row.seller_principal,
    sellerOrganization: row.seller_organization,
    taskId: row.task_id ?? "",
    status: row.status,
    approval: row.approval,
    settlement: row.settlement,
    limit: BigInt(row.limit_amount),
    finalAmount: row.final_amount === null ? undefined : BigInt(row.final_amount),
    captureId: row.capture_id,
    startBy: row.start_by_ms,
    deadline: row.deadline_ms,
    verifyBy: row.verify_by_ms ?? undefined,
    createMs: row.create_ms,
    endMs: row.end_ms ?? undefined,
    lastNumber: row.last_number,
  };
}
