import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type ExecutionReceipt,
  ExecutionReceiptSchema,
} from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import {
  type NumberedReceipt,
  NumberedReceiptSchema,
  type SettlementEntry,
  SettlementEntrySchema,
  type SettlementState,
} from "@depute/contracts/depute/tasks/v1/execution_service_pb";
import { toTimestamp } from "@depute/core";
import type { ReadTx, WriteTx } from "@depute/store";

/** Receipts that one request can have: accepted, in progress, an end, and that it was settled. */
export const MAX_RECEIPTS = 4;

export async function insertReceipt(
  tx: WriteTx,
  requestId: string,
  { number, receipt, settles }: { number: number; receipt: ExecutionReceipt; settles: boolean },
): Promise<void> {
  await tx.run(
    "INSERT INTO execution_receipts (request_id, number, receipt_id, settles, receipt) VALUES (?, ?, ?, ?, ?)",
    [requestId, number, receipt.receiptId, settles ? 1 : 0, toBinary(ExecutionReceiptSchema, receipt)],
  );
}

/** The receipts of a request after a number, in order. */
export async function readReceipts(tx: ReadTx, requestId: string, after = 0): Promise<NumberedReceipt[]> {
  const rows = await tx.all<{ number: number; settles: number; receipt: Uint8Array }>(
    `SELECT number, settles, receipt FROM execution_receipts WHERE request_id = ? AND number > ?
     ORDER BY number LIMIT ?`,
    [requestId, after, MAX_RECEIPTS],
  );
  return rows.map(({ number, settles, receipt }) =>
    create(NumberedReceiptSchema, {
      number,
      settles: settles === 1,
      receipt: fromBinary(ExecutionReceiptSchema, receipt),
    }),
  );
}

/** One receipt of a request. @throws Error when it is not there */
export async function readReceipt(tx: ReadTx, requestId: string, number: number): Promise<ExecutionReceipt> {
  const row = await tx.get<{ receipt: Uint8Array }>(
    "SELECT receipt FROM execution_receipts WHERE request_id = ? AND number = ?",
    [requestId, number],
  );
  if (row === undefined) throw new Error(`the receipt ${number} of the request ${requestId} is not there`);
  return fromBinary(ExecutionReceiptSchema, row.receipt);
}

/** A change of a payment's state. */
export interface SettlementChange {
  readonly state: SettlementState;
  /** Minor units. */
  readonly amount: bigint;
  readonly reason: string;
  /** Epoch milliseconds. */
  readonly timeMs: number;
}

export async function insertSettlement(
  tx: WriteTx,
  requestId: string,
  change: SettlementChange,
): Promise<void> {
  const last = await tx.get<{ number: number }>(
    "SELECT number FROM execution_settlements WHERE request_id = ? ORDER BY number DESC LIMIT 1",
    [requestId],
  );
  await tx.run(
    `INSERT INTO execution_settlements (request_id, number, state, amount, reason, time_ms)
     VALUES (?, ?, ?, ?, ?, ?)`,
    [requestId, (last?.number ?? 0) + 1, change.state, change.amount, change.reason, change.timeMs],
  );
}

/** All changes of a payment's state, the first one first. */
export async function readSettlements(tx: ReadTx, requestId: string): Promise<SettlementEntry[]> {
  const rows = await tx.all<{ state: number; amount: number; reason: string; time_ms: number }>(
    "SELECT state, amount, reason, time_ms FROM execution_settlements WHERE request_id = ? ORDER BY number",
    [requestId],
  );
  return rows.map((row) =>
    create(SettlementEntrySchema, {
      state: row.state as SettlementState,
      amount: BigInt(row.amount),
      reason: row.reason,
      time: toTimestamp(row.time_ms),
    }),
  );
}
