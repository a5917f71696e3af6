import { flag, integer, type ReadTx, real, row, text, type WriteTx } from "@depute/store";

/** An attestation with an outcome that the service must report to the registry. */
export interface OutboxRow {
  place: number;
  attestationId: string;
}

const OUTBOX_ROW = row<OutboxRow>({ place: integer, attestationId: text });

export async function pushOutcome(tx: WriteTx, attestationId: string): Promise<void> {
  await tx.run(
    `INSERT INTO trust_outbox (place, attestation_id) SELECT COALESCE(MAX(place), 0) + 1, ? FROM trust_outbox`,
    [attestationId],
  );
}

export function firstOutcomes(tx: ReadTx, size: number): Promise<OutboxRow[]> {
  return tx.all(
    OUTBOX_ROW,
    `SELECT place, attestation_id AS "attestationId" FROM trust_outbox ORDER BY place LIMIT ?`,
    [size],
  );
}

export async function dropOutcome(tx: WriteTx, place: number): Promise<void> {
  await tx.run("DELETE FROM trust_outbox WHERE place = ?", [place]);
}

/** A verification result that the service must report to the registry. */
export interface ResultOutcome {
  verificationId: string;
  /** The id of the agent that did the work. */
  agentId: string;
  counterpartAgentId: string;
  /** The id of the third party's agent that verified; empty if the buyer verified. */
  verifierAgentId: string;
  success: boolean;
  /** The quality of the work, from 0 to 1. */
  quality: number;
}

export type ResultOutboxRow = ResultOutcome & { place: number };

const RESULT_ROW = row({
  place: integer,
  verificationId: text,
  agentId: text,
  counterpartAgentId: text,
  verifierAgentId: text,
  success: flag,
  quality: real,
});

export async function pushResult(tx: WriteTx, outcome: ResultOutcome): Promise<void> {
  const { verificationId, agentId, counterpartAgentId, verifierAgentId, success, quality } = outcome;
  await tx.run(
    `INSERT INTO trust_results_outbox (place, verification_id, agent_id, counterpart_agent_id, verifier_agent_id,
       success, quality)
     SELECT COALESCE(MAX(place), 0) + 1, ?, ?, ?, ?, ?, ? FROM trust_results_outbox`,
    [verificationId, agentId, counterpartAgentId, verifierAgentId, success ? 1 : 0, quality],
  );
}

export async function firstResults(tx: ReadTx, size: number): Promise<ResultOutboxRow[]> {
  const rows = await tx.all(
    RESULT_ROW,
    `SELECT place, verification_id AS "verificationId", agent_id AS "agentId",
       counterpart_agent_id AS "counterpartAgentId", verifier_agent_id AS "verifierAgentId", success, quality
     FROM trust_results_outbox ORDER BY place LIMIT ?`,
    [size],
  );
  return rows.map((row) => ({ ...row, success: row.success === 1 }));
}

export async function dropResult(tx: WriteTx, place: number): Promise<void> {
  await tx.run("DELETE FROM trust_results_outbox WHERE place = ?", [place]);
}
