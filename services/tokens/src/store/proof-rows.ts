import { integer, type ReadTx, row, text, type WriteTx } from "@depute/store";
import { padded } from "../rules/padded.ts";

const PRINCIPAL_JTI_KIND_FORGET_MS_ROW = row({
  principal: text,
  jti: text,
  kind: integer,
  forget_ms: integer,
});
const PRINCIPAL_JTI_ROW = row({ principal: text, jti: text });
const HORIZON_MS_ROW = row({ horizon_ms: integer });

/**
 * The kinds of a proof. `token`: the service has verified the token that the call presents with the proof. `identity`:
 * the service has verified no token, so any party can make the proof.
 */
export const PROOF_KINDS = { identity: 0, token: 1 } as const;
export type ProofKind = keyof typeof PROOF_KINDS;

export interface SeenProof {
  readonly principal: string;
  readonly jti: string;
  readonly kind: ProofKind;
  /** The time after which the store need not keep the proof, in epoch milliseconds. */
  readonly forgetTime: number;
}

/** Number of proofs that one SQL statement inserts. */
const ROWS = 32;

/** Inserts proofs. If the store already has a proof, does not change it. */
export async function insertProofs(tx: WriteTx, proofs: readonly SeenProof[]): Promise<void> {
  for (let from = 0; from < proofs.length; ) {
    // Inserts ROWS proofs or one proof at a time, so that the store prepares only two SQL statements.
    const rows = proofs.slice(from, from + (proofs.length - from >= ROWS ? ROWS : 1));
    await tx.run(insertOf(rows), valuesOf(rows));
    from += rows.length;
  }
}

/** Inserts proofs by one SQL statement, and returns those that the store did not have before. */
export async function insertNewProofs(
  tx: WriteTx,
  proofs: readonly SeenProof[],
): Promise<Pick<SeenProof, "principal" | "jti">[]> {
  // `padded` repeats a row. The repeated row changes nothing.
  const rows = padded(proofs);
  return tx.all(PRINCIPAL_JTI_ROW, `${insertOf(rows)} RETURNING principal, jti`, valuesOf(rows));
}

function insertOf(rows: readonly SeenProof[]): string {
  return `INSERT INTO seen_proofs (principal, jti, kind, forget_ms) VALUES ${rows.map(() => "(?, ?, ?, ?)").join(", ")}
       ON CONFLICT (principal, jti) DO NOTHING`;
}

function valuesOf(rows: readonly SeenProof[]): (string | number)[] {
  return rows.flatMap(({ principal, jti, kind, forgetTime }) => [
    principal,
    jti,
    PROOF_KINDS[kind],
    forgetTime,
  ]);
}

/** Returns unexpired proofs after a given proof, in the order of principal and `jti`. */
export async function readProofs(
  tx: ReadTx,
  now: number,
  after: Pick<SeenProof, "principal" | "jti">,
  limit: number,
): Promise<SeenProof[]> {
  const rows = await tx.all(
    PRINCIPAL_JTI_KIND_FORGET_MS_ROW,
    `SELECT principal, jti, kind, forget_ms FROM seen_proofs
     WHERE forget_ms >= ? AND (principal, jti) > (?, ?) ORDER BY principal, jti LIMIT ?`,
    [now, after.principal, after.jti, limit],
  );
  return rows.map(({ principal, jti, kind, forget_ms }) => {
    return {
      principal,
      jti,
      kind: kind === PROOF_KINDS.token ? "token" : "identity",
      forgetTime: forget_ms,
    };
  });
}

/** Deletes some expired proofs; returns their number. */
export async function forgetProofs(tx: WriteTx, now: number, limit: number): Promise<number> {
  const { changes } = await tx.run(
    `DELETE FROM seen_proofs WHERE (principal, jti) IN
       (SELECT principal, jti FROM seen_proofs WHERE forget_ms < ? ORDER BY forget_ms LIMIT ?)`,
    [now, limit],
  );
  return changes;
}

/**
 * Returns the horizon in epoch milliseconds. An earlier process may have accepted proofs with an `iat` up to this time
 * without writing them to the store.
 */
export async function readHorizon(tx: ReadTx): Promise<number> {
  const row = await tx.get(HORIZON_MS_ROW, "SELECT horizon_ms FROM proof_horizon WHERE id = 1");
  return row?.horizon_ms ?? 0;
}

export async function writeHorizon(tx: WriteTx, horizon: number): Promise<void> {
  await tx.run("UPDATE proof_horizon SET horizon_ms = ? WHERE id = 1", [horizon]);
}
