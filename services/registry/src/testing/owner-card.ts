import { sign } from "node:crypto";
import { canonicalBytes } from "@depute/core";
import type { Signer } from "./statement.ts";

/** Signs an A2A card as the agent's principal does: by a JWS over the card's canonical form. */
export function signedCard(
  { key }: Signer,
  parts: Record<string, unknown>,
  header: Record<string, unknown> = {},
): string {
  const card = JSON.parse(JSON.stringify(parts));
  const protectedHeader = Buffer.from(JSON.stringify({ alg: "EdDSA", ...header })).toString("base64url");
  const payload = Buffer.from(canonicalBytes(card)).toString("base64url");
  const signature = sign(null, Buffer.from(`${protectedHeader}.${payload}`), key).toString("base64url");
  return JSON.stringify({ ...card, signatures: [{ protected: protectedHeader, signature }] });
}
