import { integer, type ReadTx, row, text, type WriteTx } from "@depute/store";
import type { JwtKeyLife } from "../rules/jwt-keys.ts";

/** A key that signs projections. */
export interface JwtKeyRow extends JwtKeyLife {
  /** The public key: a JSON Web Key as text. */
  readonly jwk: string;
  /** The private key: a JSON Web Key, sealed by the master key. */
  readonly sealed: string;
}

const JWT_KEY_ROW = row<JwtKeyRow>({ kid: text, activateTime: integer, jwk: text, sealed: text });

/** Returns all keys, in the order of activation. */
export async function readJwtKeys(tx: ReadTx): Promise<JwtKeyRow[]> {
  return tx.all(
    JWT_KEY_ROW,
    "SELECT kid, activate_ms AS activateTime, jwk, sealed FROM jwt_keys ORDER BY activate_ms, kid",
  );
}

export async function insertJwtKey(
  tx: WriteTx,
  { kid, activateTime, jwk, sealed }: JwtKeyRow,
): Promise<void> {
  await tx.run("INSERT INTO jwt_keys (kid, activate_ms, jwk, sealed) VALUES (?, ?, ?, ?)", [
    ...[kid, activateTime, jwk, sealed],
  ]);
}

export async function forgetJwtKey(tx: WriteTx, kid: string): Promise<void> {
  await tx.run("DELETE FROM jwt_keys WHERE kid = ?", [kid]);
}
