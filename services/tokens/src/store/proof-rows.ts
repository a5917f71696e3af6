import type { ReadTx, WriteTx } from "@depute/store";

/** Whether a proof came with a token whose signatures hold, or only states who calls, which anybody's key can. */
export const PROOF_KINDS = { identity: 0, token: 1 } as const;
export type ProofKind = keyof typeof PROOF_KINDS;

export type ProofCounts = Record<ProofKind, number>;

export interface SeenProof {
  readonly principal: string;
  readonly jti: string;
  readonly kind: ProofKind;
  /** Milliseconds since 1970. */
  readonly forgetTime: number;
}

/** Remembers a proof; false when it is remembered already. */
export async function insertProof(
  tx: WriteTx,
  { principal, jti, kind, forgetTime }: SeenProof,
): Promise<boolean> {
  const { changes } = await tx.run(
    `INSERT INTO seen_proofs (principal, jti, kind, forget_ms) VALUES (?, ?, ?, ?)
     ON CONFLICT (principal, jti) DO NOTHING`,
    [principal, jti, PROOF_KINDS[kind], forgetTime],
  );
  return changes === 1;
}

/** Forgets some of those that their time refuses, and says how many of each kind. */
export async function forgetProofs(tx: WriteTx, now: number, limit: number): Promise<ProofCounts> {
  const rows = await tx.all<{ kind: number }>(
    `DELETE FROM seen_proofs WHERE (principal, jti) IN
       (SELECT principal, jti FROM seen_proofs WHERE forget_ms < ? ORDER BY forget_ms LIMIT ?)
     RETURNING kind`,
    [now, limit],
  );
  const token = rows.filter(({ kind }) => kind === PROOF_KINDS.token).length;
  return { token, identity: rows.length - token };
}

/** How many of each kind are remembered. */
export async function countProofs(tx: ReadTx): Promise<ProofCounts> {
  const rows = await tx.all<{ kind: number; number: number }>(
    "SELECT kind, COUNT(*) AS number FROM seen_proofs GROUP BY kind",
  );
  const of = (kind: ProofKind) => rows.find((row) => row.kind === PROOF_KINDS[kind])?.number ?? 0;
  return { token: of("token"), identity: of("identity") };
}
