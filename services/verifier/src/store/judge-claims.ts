import type { WriteTx } from "@depute/store";
import type { JudgeResultKey } from "./judge-results.ts";

/** The claim of one process on a judge run. */
export interface JudgeClaim {
  readonly key: JudgeResultKey;
  /** The unique id of the claim's holder. */
  readonly holder: string;
}

const WHERE = "WHERE contract_id = ? AND output_hash = ? AND step = ?";

function paramsOf({ contractId, outputHash, step }: JudgeResultKey): string[] {
  return [contractId, outputHash, step];
}

/**
 * Claims a judge run until a time in epoch milliseconds.
 *
 * @returns false if another claim is in force
 */
export async function insertClaim(
  tx: WriteTx,
  { key, holder }: JudgeClaim,
  { now, expireMs }: { readonly now: number; readonly expireMs: number },
): Promise<boolean> {
  const { changes } = await tx.run(
    `INSERT INTO judge_claims (contract_id, output_hash, step, holder, expire_ms) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (contract_id, output_hash, step) DO UPDATE SET holder = excluded.holder, expire_ms = excluded.expire_ms
       WHERE judge_claims.expire_ms <= ?`,
    [...paramsOf(key), holder, expireMs, now],
  );
  return changes > 0;
}

/**
 * Extends a claim until a time in epoch milliseconds.
 *
 * @returns false if another process has taken over the claim
 */
export async function extendClaim(
  tx: WriteTx,
  { key, holder }: JudgeClaim,
  expireMs: number,
): Promise<boolean> {
  const { changes } = await tx.run(`UPDATE judge_claims SET expire_ms = ? ${WHERE} AND holder = ?`, [
    expireMs,
    ...paramsOf(key),
    holder,
  ]);
  return changes > 0;
}

/** Deletes a claim, unless another process has taken over the judge run. */
export async function deleteClaim(tx: WriteTx, { key, holder }: JudgeClaim): Promise<void> {
  await tx.run(`DELETE FROM judge_claims ${WHERE} AND holder = ?`, [...paramsOf(key), holder]);
}
