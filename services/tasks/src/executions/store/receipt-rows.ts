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
  SettlementState,
} from "@depute/contracts/depute/tasks/v1/execution_service_pb";
import { toTimestamp } from "@depute/core";
import { bytes, flag, int64, integer, memberOf, type ReadTx, row, text, type WriteTx } from "@depute/store";

const NUMBERED_ROW = row({ number: integer, settles: flag, receipt: bytes });
const RECEIPT_ROW = row({ receipt: bytes });
const NUMBER_ROW = row({ number: integer });
const SETTLEMENT_ROW = row({
  state: memberOf(SettlementState),
  amount: int64,
  reason: text,
  time_ms: integer,
});

/** Maximum number of a request's receipts: accepted, in progress, a terminal status, and the settlement. */
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

/** Returns the receipts of a request with a number above `after`, in order. */
export async function readReceipts(tx: ReadTx, requestId: string, after = 0): Promise<NumberedReceipt[]> {
  const rows = await tx.all(
    NUMBERED_ROW,
    `SELECT number, settles, receipt FROM execution_receipts WHERE request_id = ? AND number > ?
     ORDER BY number LIMIT ?`,
    [requestId, after, MAX_RECEIPTS],
  );
  return rows.map(({ number, settles, receipt }) =>
    create(NumberedReceiptSchema, {
      sequence: BigInt(number),
      settles: settles === 1,
      receipt: fromBinary(ExecutionReceiptSchema, receipt),
    }),
  );
}

/**
 * Reads one receipt of a request.
 *
 * @throws Error if the receipt is missing
 */
export async function readReceipt(tx: ReadTx, requestId: string, number: number): Promise<ExecutionReceipt> {
  const row = await tx.get(
    RECEIPT_ROW,
    "SELECT receipt FROM execution_receipts WHERE request_id = ? AND number = ?",
    [requestId, number],
  );
  if (row === undefined) throw new Error(`the receipt ${number} of the request ${requestId} does not exist`);
  return fromBinary(ExecutionReceiptSchema, row.receipt);
}

/** A change of a payment's state. */
export interface SettlementChange {
  readonly state: SettlementState;
  /** The amount in minor units of the currency. */
  readonly amount: bigint;
  readonly reason: string;
  /** The time of the change, in epoch milliseconds. */
  readonly timeMs: number;
}

export async function insertSettlement(
  tx: WriteTx,
  requestId: string,
  change: SettlementChange,
): Promise<void> {
  const last = await tx.get(
    NUMBER_ROW,
    "SELECT number FROM execution_settlements WHERE request_id = ? ORDER BY number DESC LIMIT 1",
    [requestId],
  );
  await tx.run(
    `INSERT INTO execution_settlements (request_id, number, state, amount, reason, time_ms)
     VALUES (?, ?, ?, ?, ?, ?)`,
    [requestId, (last?.number ?? 0) + 1, change.state, change.amount, change.reason, change.timeMs],
  );
}

/** Returns all changes of a payment's state, the oldest first. */
export async function readSettlements(tx: ReadTx, requestId: string): Promise<SettlementEntry[]> {
  const rows = await tx.all(
    SETTLEMENT_ROW,
    "SELECT state, amount, reason, time_ms FROM execution_settlements WHERE request_id = ? ORDER BY number",
    [requestId],
  );
  return rows.map((row) =>
    create(SettlementEntrySchema, {
      state: row.state,
      amount: BigInt(row.amount),
      reason: row.reason,
      time: toTimestamp(row.time_ms),
    }),
  );
}
