import { integer, type ReadTx, row, text, type WriteTx } from "@depute/store";
import type { CheckResult } from "../rules/check-result.ts";

const RESULT_COST_ROW = row({ result: text, cost: integer });
const PLACE_ROW = row({ place: integer });
const COST_ROW = row({ cost: integer });

/** One judging: an output under one step of a contract. */
export interface JudgementKey {
  contractId: string;
  outputHash: string;
  /** Where the step stands in the contract's verification: "" or "0", "0.1". */
  step: string;
}

export async function getJudgement(
  tx: ReadTx,
  { contractId, outputHash, step }: JudgementKey,
): Promise<{ result: CheckResult; cost: number } | undefined> {
  const row = await tx.get(
    RESULT_COST_ROW,
    "SELECT result, cost FROM judgements WHERE contract_id = ? AND output_hash = ? AND step = ?",
    [contractId, outputHash, step],
  );
  return row === undefined ? undefined : { result: JSON.parse(row.result) as CheckResult, cost: row.cost };
}

export async function insertJudgement(
  tx: WriteTx,
  { contractId, outputHash, step }: JudgementKey,
  result: CheckResult,
  cost: number,
  now: number,
): Promise<void> {
  await tx.run(
    `INSERT INTO judgements (contract_id, output_hash, step, result, cost, create_ms) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (contract_id, output_hash, step) DO NOTHING`,
    [contractId, outputHash, step, JSON.stringify(result), cost, now],
  );
}

/** Sets aside what judging may cost, for the contract's issuer: it counts in full until it is settled. Gives its place. */
export async function holdCharge(
  tx: WriteTx,
  { contractId, issuer, cost }: { contractId: string; issuer: string; cost: number },
  now: number,
): Promise<number> {
  const row = await tx.get(PLACE_ROW, `SELECT COALESCE(MAX(place), 0) + 1 AS "place" FROM judge_charges`);
  const place = row?.place ?? 1;
  await tx.run(
    "INSERT INTO judge_charges (place, contract_id, issuer, cost, create_ms) VALUES (?, ?, ?, ?, ?)",
    [place, contractId, issuer, cost, now],
  );
  return place;
}

/** Writes down what judging did cost. */
export async function settleCharge(tx: WriteTx, place: number, cost: number): Promise<void> {
  await tx.run("UPDATE judge_charges SET cost = ? WHERE place = ?", [cost, place]);
}

/** Microcents that judging outputs of a contract has cost. */
export async function chargesOf(tx: ReadTx, contractId: string): Promise<number> {
  const row = await tx.get(
    COST_ROW,
    `SELECT COALESCE(SUM(cost), 0) AS "cost" FROM judge_charges WHERE contract_id = ?`,
    [contractId],
  );
  return row?.cost ?? 0;
}
