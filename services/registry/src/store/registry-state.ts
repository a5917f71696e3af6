import { integer, type ReadTx, row, type WriteTx } from "@depute/store";

const VALUE_ROW = row({ value: integer });

const LAST_UP = "last_up";
const REVIEWS = "reviews";

/** Returns the time at which the registry last ran, in epoch milliseconds; undefined before its first start. */
export async function readLastUp(tx: ReadTx): Promise<number | undefined> {
  const row = await tx.get(VALUE_ROW, "SELECT value FROM registry_state WHERE name = ?", [LAST_UP]);
  return row?.value;
}

export async function writeLastUp(tx: WriteTx, now: number): Promise<void> {
  await tx.run(
    `INSERT INTO registry_state (name, value) VALUES (?, ?)
     ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
    [LAST_UP, now],
  );
}

/** The position up to which the registry has read the verifier's stream of reviews. The position never decreases. */
export const REVIEW_CURSOR = {
  async read(tx: ReadTx): Promise<number> {
    const row = await tx.get(VALUE_ROW, "SELECT value FROM registry_state WHERE name = ?", [REVIEWS]);
    return row?.value ?? 0;
  },
  async advance(tx: WriteTx, position: number): Promise<void> {
    await tx.run(
      `INSERT INTO registry_state (name, value) VALUES (?, ?)
       ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE excluded.value > registry_state.value`,
      [REVIEWS, position],
    );
  },
};
