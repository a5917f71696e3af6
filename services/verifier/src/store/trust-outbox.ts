import type { ReadTx, WriteTx } from "@depute/store";

/** An attestation whose outcome the registry has to be told. */
export interface OutboxRow {
  place: number;
  attestationId: string;
}

export async function pushOutcome(tx: WriteTx, attestationId: string): Promise<void> {
  await tx.run(
    `INSERT INTO trust_outbox (place, attestation_id) SELECT COALESCE(MAX(place), 0) + 1, ? FROM trust_outbox`,
    [attestationId],
  );
}

export function firstOutcomes(tx: ReadTx, size: number): Promise<OutboxRow[]> {
  return tx.all(`SELECT place, attestation_id AS "attestationId" FROM trust_outbox ORDER BY place LIMIT ?`, [
    size,
  ]);
}

export async function dropOutcome(tx: WriteTx, place: number): Promise<void> {
  await tx.run("DELETE FROM trust_outbox WHERE place = ?", [place]);
}
