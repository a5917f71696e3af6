import { MAX_COUNTED_REMAINING, type PurgeTally } from "@depute/service";
import { integer, type ReadTx, row, text, type WriteTx } from "@depute/store";
import { findReservation, settleReservation } from "./spend-rows.ts";

const ID_ROW = row({ id: text });
const POSITION_ROW = row({ position: integer });
const NUMBER_ROW = row({ number: integer });

/** Deletes kept keys of an organization, together with their sealed private keys. */
export async function deleteKeysOf(tx: WriteTx, organization: string, tally: PurgeTally): Promise<void> {
  const keys = await tx.all(
    ID_ROW,
    "SELECT id FROM kept_keys WHERE organization = ? AND organization <> '' ORDER BY id LIMIT ?",
    [organization, Math.max(0, tally.left)],
  );
  for (const { id } of keys) {
    await tx.run("DELETE FROM agent_key_changes WHERE key_id = ?", [id]);
    await tx.run("DELETE FROM agent_key_changes WHERE successor_id = ?", [id]);
    await tx.run("DELETE FROM kept_keys WHERE id = ?", [id]);
  }
  tally.count("kept keys", keys.length);
}

/**
 * Deletes an organization's reservations that are settled or expired. Before it deletes an expired reservation, charges
 * it in full.
 *
 * @param now epoch milliseconds
 */
export async function deleteReservationsOf(
  tx: WriteTx,
  organization: string,
  now: number,
  tally: PurgeTally,
): Promise<void> {
  const over = await tx.all(
    ID_ROW,
    `SELECT id FROM reservations WHERE organization = ? AND organization <> ''
       AND (state <> 'held' OR expire_ms <= ?) ORDER BY id LIMIT ?`,
    [organization, now, Math.max(0, tally.left)],
  );
  for (const { id } of over) {
    const reservation = await findReservation(tx, id);
    if (reservation?.state === "held") {
      await settleReservation(tx, reservation, { state: "committed", charged: reservation.amount });
    }
    await tx.run("DELETE FROM reservations WHERE id = ?", [id]);
  }
  tally.count("reservations", over.length);
}

/**
 * Deletes an organization's delegations, beginning with those that have no delegation below them. Keeps a completed or
 * failed delegation until its token expires. Otherwise a caller could record the same token again, and end the
 * delegation again.
 *
 * @param now epoch milliseconds
 */
export async function deleteDelegationsOf(
  tx: WriteTx,
  organization: string,
  now: number,
  tally: PurgeTally,
): Promise<void> {
  while (tally.left > 0) {
    const last = await tx.all(
      POSITION_ROW,
      `SELECT position FROM delegations d WHERE organization = ? AND organization <> ''
         AND (status IN ('active', 'revoked') OR expire_ms <= ?)
         AND NOT EXISTS (SELECT 1 FROM delegations c WHERE c.parent_chain_id = d.chain_id)
       ORDER BY position LIMIT ?`,
      [organization, now, tally.left],
    );
    if (last.length === 0) return;
    for (const { position } of last) {
      await tx.run("DELETE FROM delegation_blocks WHERE position = ?", [position]);
      await tx.run("DELETE FROM delegations WHERE position = ?", [position]);
    }
    tally.count("delegations", last.length);
  }
}

/**
 * Counts the records of an organization that this purge cannot delete yet, by kind. Stops at MAX_COUNTED_REMAINING.
 */
export async function countRemaining(tx: ReadTx, organization: string): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>();
  for (const table of ["reservations", "delegations"]) {
    const counted = await tx.get(
      NUMBER_ROW,
      `SELECT COUNT(*) AS number FROM
         (SELECT 1 FROM ${table} WHERE organization = ? AND organization <> '' LIMIT ?) AS counted`,
      [organization, MAX_COUNTED_REMAINING],
    );
    counts.set(table, counted?.number ?? 0);
  }
  return counts;
}
