import { integer, nullable, oneOf, type ReadTx, type RowOf, row, text, type WriteTx } from "@depute/store";
import type { ReservationRecord } from "../rules/spend.ts";

const AMOUNT_ROW = row({ amount: nullable(integer) });

/** A stored reservation. Amounts are microcents, and times are epoch milliseconds. */
export interface StoredReservation extends ReservationRecord {
  readonly caller: string;
  /** The organization that owns the reservation; empty without an organization. */
  readonly organization: string;
  readonly requestId: string;
  /** The digest of the whole request. */
  readonly digest: string;
  /** The revocation ids of the token's blocks, that of the authority block first. */
  readonly blocks: readonly string[];
  readonly createTime: number;
  readonly forgetTime: number;
}

/**
 * The totals under one block: microcents charged (`spent`) and reserved (`held`), and the number of reservations that
 * are not settled (`open`).
 */
export interface Spend {
  readonly spent: number;
  readonly held: number;
  readonly open: number;
}

// `spent` and `held` are separate, because their sum may exceed 2^53-1, and larger integers are not exact.
const COUNTED_ROW = row({ spent: integer, held: integer });
const HELD_ROW = row({ spent: integer, held: integer, open: integer, forget_ms: integer });
const SPEND_ROW = row({ revocation_id: text, spent: integer, held: integer, open: integer });

const ROW = row({
  id: text,
  caller: text,
  organization: text,
  request_id: text,
  digest: text,
  state: oneOf("held", "committed", "released"),
  amount: integer,
  charged: integer,
  blocks: text,
  create_ms: integer,
  expire_ms: integer,
  forget_ms: integer,
});
type Row = RowOf<typeof ROW>;

const MEMBERS =
  "id, caller, organization, request_id, digest, state, amount, charged, blocks, create_ms, expire_ms, forget_ms";

export async function findReservation(tx: ReadTx, id: string): Promise<StoredReservation | undefined> {
  const row = await tx.get(ROW, `SELECT ${MEMBERS} FROM reservations WHERE id = ?`, [id]);
  return row && toReservation(row);
}

export async function findByRequest(
  tx: ReadTx,
  caller: string,
  requestId: string,
): Promise<StoredReservation | undefined> {
  const sql = `SELECT ${MEMBERS} FROM reservations WHERE caller = ? AND request_id = ?`;
  const row = await tx.get(ROW, sql, [caller, requestId]);
  return row && toReservation(row);
}

export async function insertReservation(tx: WriteTx, reservation: StoredReservation): Promise<void> {
  const { id, caller, organization, requestId, digest, state, amount, charged, blocks } = reservation;
  const { createTime, expireTime, forgetTime } = reservation;
  await tx.run(`INSERT INTO reservations (${MEMBERS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, [
    ...[id, caller, organization, requestId, digest, state, amount, charged, JSON.stringify(blocks)],
    ...[createTime, expireTime, forgetTime],
  ]);
  for (const block of blocks) {
    await tx.run(
      "INSERT INTO open_spend (revocation_id, reservation_id, amount, expire_ms) VALUES (?, ?, ?, ?)",
      [block, id, amount, expireTime],
    );
  }
}

/** The totals under a block after a reservation: microcents charged plus reserved, and the open reservations. */
export interface HeldSpend {
  readonly counted: number;
  readonly open: number;
}

/**
 * Reserves an amount on a block. Returns the new totals; undefined if the total would exceed the block's budget. One
 * statement both checks and adds. So if two concurrent reservations together exceed the budget, only one succeeds.
 */
export async function hold(
  tx: WriteTx,
  revocationId: string,
  { amount, limit, forgetTime }: { amount: number; limit: number; forgetTime: number },
): Promise<HeldSpend | undefined> {
  const add = () =>
    tx.get(
      HELD_ROW,
      `UPDATE spend SET held = held + ?, open = open + 1 WHERE revocation_id = ? AND held <= ? - spent - ?
       RETURNING spent, held, open, forget_ms`,
      [amount, revocationId, limit, amount],
    );
  // Most blocks have a row already, so the row is inserted only after an update has found none.
  const row = (await add()) ?? (await insertSpend(tx, revocationId, forgetTime).then(add));
  if (row === undefined) return undefined;
  // A separate statement, because an update of `forget_ms` also rewrites the index of the times.
  if (row.forget_ms < forgetTime) {
    await tx.run("UPDATE spend SET forget_ms = ? WHERE revocation_id = ?", [forgetTime, revocationId]);
  }
  return { counted: row.spent + row.held, open: row.open };
}

async function insertSpend(tx: WriteTx, revocationId: string, forgetTime: number): Promise<void> {
  await tx.run(
    `INSERT INTO spend (revocation_id, spent, held, open, forget_ms) VALUES (?, 0, 0, 0, ?)
     ON CONFLICT (revocation_id) DO NOTHING`,
    [revocationId, forgetTime],
  );
}

/** Settles a reservation on each of its blocks; returns the blocks' new totals. */
export async function settleReservation(
  tx: WriteTx,
  { id, amount, blocks }: StoredReservation,
  { state, charged }: Pick<StoredReservation, "state" | "charged">,
): Promise<number[]> {
  const counted: number[] = [];
  await tx.run("UPDATE reservations SET state = ?, charged = ? WHERE id = ?", [state, charged, id]);
  for (const block of blocks) {
    const row = await tx.get(
      COUNTED_ROW,
      `UPDATE spend SET held = held - ?, spent = spent + ?, open = open - 1 WHERE revocation_id = ?
       RETURNING spent, held`,
      [amount, charged, block],
    );
    counted.push(row === undefined ? 0 : row.spent + row.held);
    await tx.run("DELETE FROM open_spend WHERE revocation_id = ? AND reservation_id = ?", [block, id]);
  }
  return counted;
}

/** Returns the totals under each of the given blocks, in the order of the blocks. */
export async function readSpend(tx: ReadTx, revocationIds: readonly string[]): Promise<Spend[]> {
  const rows = await tx.all(
    SPEND_ROW,
    `SELECT revocation_id, spent, held, open FROM spend
     WHERE revocation_id IN (${revocationIds.map(() => "?").join(", ")})`,
    revocationIds,
  );
  const rowsById = new Map(rows.map((row) => [row.revocation_id, row]));
  return revocationIds.map((id) => rowsById.get(id) ?? { spent: 0, held: 0, open: 0 });
}

/** Returns the microcents charged plus reserved, by block. A block without spend and reservations is absent. */
export async function readSpendOf(
  tx: ReadTx,
  revocationIds: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const rows = await tx.all(
    SPEND_ROW,
    `SELECT revocation_id, spent, held, open FROM spend WHERE revocation_id IN (${slotsOf(revocationIds)})`,
    revocationIds,
  );
  return new Map(rows.map(({ revocation_id, spent, held }) => [revocation_id, spent + held]));
}

function slotsOf(values: readonly string[]): string {
  return values.map(() => "?").join(", ");
}

/** Returns the microcents that expired reservations hold on a block. */
export async function readExpired(tx: ReadTx, revocationId: string, now: number): Promise<number> {
  const row = await tx.get(
    AMOUNT_ROW,
    "SELECT SUM(amount) AS amount FROM open_spend WHERE revocation_id = ? AND expire_ms <= ?",
    [revocationId, now],
  );
  return row?.amount ?? 0;
}

/** Returns the microcents of all reservations that are neither settled nor expired. Reads one index. */
export async function readHeld(tx: ReadTx, now: number): Promise<number> {
  const row = await tx.get(
    AMOUNT_ROW,
    "SELECT SUM(amount) AS amount FROM reservations WHERE state = 'held' AND expire_ms > ?",
    [now],
  );
  return row?.amount ?? 0;
}

/**
 * Deletes at most `limit` reservations, and the totals of at most `limit` blocks, whose `forget_ms` has passed. Charges
 * the whole amount of a reservation that is not settled before it deletes the reservation. Keeps the total of a block
 * with open reservations.
 *
 * @returns whether more rows may be due
 */
export async function forgetSpend(tx: WriteTx, now: number, limit: number): Promise<boolean> {
  const due = await tx.all(
    ROW,
    `SELECT ${MEMBERS} FROM reservations WHERE forget_ms < ? ORDER BY forget_ms LIMIT ?`,
    [now, limit],
  );
  for (const row of due) {
    const reservation = toReservation(row);
    if (row.state === "held") {
      await settleReservation(tx, reservation, { state: "committed", charged: row.amount });
    }
    await tx.run("DELETE FROM reservations WHERE id = ?", [row.id]);
  }
  const { changes } = await tx.run(
    `DELETE FROM spend WHERE open = 0 AND revocation_id IN
       (SELECT revocation_id FROM spend WHERE forget_ms < ? ORDER BY forget_ms LIMIT ?)`,
    [now, limit],
  );
  return due.length === limit || changes > 0;
}

function toReservation(row: Row): StoredReservation {
  const { request_id, blocks, create_ms, expire_ms, forget_ms, ...rest } = row;
  return {
    ...rest,
    requestId: request_id,
    blocks: JSON.parse(blocks),
    createTime: create_ms,
    expireTime: expire_ms,
    forgetTime: forget_ms,
  };
}
