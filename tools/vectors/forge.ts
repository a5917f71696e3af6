import { canonicalBytes, encodeBase64Url } from "@depute/core";
import type { Keypair } from "@depute/dct";
import { encodeJson, engine, keypairOf } from "./shared.ts";

/** A token whose blocks are not checked. The forger chooses the key that signs each block. */
export interface ForgedToken {
  readonly format: unknown;
  readonly authority: object;
  readonly attenuations: readonly object[];
  readonly signatures: readonly object[];
}

/** The holders of the chain in all vectors: the signer of each block, and then the delegatee of the last block. */
export const HOLDERS = [
  keypairOf("root"),
  keypairOf("alice"),
  keypairOf("bob"),
  keypairOf("carol"),
  keypairOf("dave"),
  keypairOf("erin"),
] as const;

/** Returns the canonical JSON that the signature of a block covers. Level 0 is the authority block. */
export function signedText(authority: object, attenuations: readonly object[], level: number): string {
  const covered = level === 0 ? { authority } : { authority, attenuations: attenuations.slice(0, level) };
  return new TextDecoder().decode(canonicalBytes(covered));
}

export function signedDigest(authority: object, attenuations: readonly object[], level: number): Uint8Array {
  return engine.blake2b256(new TextEncoder().encode(signedText(authority, attenuations, level)));
}

/** Signs blocks without any check, as an attacker's tool can. */
export function forge(
  authority: object,
  attenuations: readonly object[] = [],
  keys: readonly Keypair[] = HOLDERS,
): ForgedToken {
  const signatures = [authority, ...attenuations].map((_, level) => {
    const key = keys[level] as Keypair;
    const signature = engine.sign(signedDigest(authority, attenuations, level), key.privateKey);
    const covers = level === 0 ? "authority" : level - 1;
    return { signer: key.principal.id, signature: encodeBase64Url(signature), covers };
  });
  return { format: "delegateos-sjt-v1", authority, attenuations, signatures };
}

/** Returns a forged token in its serialised form. */
export function forged(
  authority: object,
  attenuations: readonly object[] = [],
  keys: readonly Keypair[] = HOLDERS,
): string {
  return encodeJson(forge(authority, attenuations, keys));
}
