import { integer, type ReadTx, row, text, type WriteTx } from "@depute/store";
import type { CheckResult } from "../rules/check-result.ts";

const RESULT_COST_ROW = row({ result: text, cost: integer });
const PLACE_ROW = row({ place: integer });
const COST_ROW = row({ cost: integer });

/** The key of a judge's result: the contract, the step and the output. */
export interface JudgeResultKey {
  contractId: string;
  outputHash: string;
  /**
   * Path of the step in the contract's verification: "" for the verification itself, otherwise for example "0" or
   * "0.1".
   */
  step: string;
}

export async function findJudgeResult(
  tx: ReadTx,
  { contractId, outputHash, step }: JudgeResultKey,
): Promise<{ result: CheckResult; cost: number } | undefined> {
  const row = await tx.get(
    RESULT_COST_ROW,
    "SELECT result, cost FROM judgements WHERE contract_id = ? AND output_hash = ? AND step = ?",
    [contractId, outputHash, step],
  );
  return row === undefined ? undefined : { result: JSON.parse(row.result) as CheckResult, cost: row.cost };
}

export async function insertJudgeResult(
  tx: WriteTx,
  { contractId, outputHash, step }: JudgeResultKey,
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

/**
 * Inserts a charge with the maximum cost, which counts until the actual cost is known.
 *
 * @returns the position of the charge, for updateCharge
 */
export async function insertCharge(
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

/** Sets the actual cost of a charge. */
export async function updateCharge(tx: WriteTx, place: number, cost: number): Promise<void> {
  await tx.run("UPDATE judge_charges SET cost = ? WHERE place = ?", [cost, place]);
}

/** Returns the total cost of judge runs for a contract, in microcents. */
export async function sumCharges(tx: ReadTx, contractId: string): Promise<number> {
  const row = await tx.get(
    COST_ROW,
    `SELECT COALESCE(SUM(cost), 0) AS "cost" FROM judge_charges WHERE contract_id = ?`,
    [contractId],
  );
  return row?.cost ?? 0;
}
