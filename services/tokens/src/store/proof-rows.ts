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

/** Proofs that one statement remembers. */
const ROWS = 16;

/** Remembers proofs, and says of each whether it was not remembered before; of two alike the first one was not. */
export async function insertProofs(tx: WriteTx, proofs: readonly SeenProof[]): Promise<boolean[]> {
  const fresh = new Set<string>();
  for (let from = 0; from < proofs.length; ) {
    // Whole statements of one length, so that there are two to prepare and not as many as lengths.
    const rows = proofs.slice(from, from + (proofs.length - from >= ROWS ? ROWS : 1));
    const inserted = await tx.all<Pick<SeenProof, "principal" | "jti">>(
      `INSERT INTO seen_proofs (principal, jti, kind, forget_ms) VALUES ${rows.map(() => "(?, ?, ?, ?)").join(", ")}
       ON CONFLICT (principal, jti) DO NOTHING RETURNING principal, jti`,
      rows.flatMap(({ principal, jti, kind, forgetTime }) => [principal, jti, PROOF_KINDS[kind], forgetTime]),
    );
    for (const row of inserted) fresh.add(keyOf(row));
    from += rows.length;
  }
  return proofs.map((proof) => fresh.delete(keyOf(proof)));
}

/** A principal has a fixed length, so no two proofs have one key. */
function keyOf({ principal, jti }: Pick<SeenProof, "principal" | "jti">): string {
  return principal + jti;
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
