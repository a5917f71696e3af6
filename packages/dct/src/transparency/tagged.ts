import { canonicalBytes, decodeBase64Url, encodeBase64Url } from "@depute/core";
import type { CryptoEngine } from "../engine.ts";
import { parsePrincipal } from "../principal.ts";
import type { Keypair } from "../types.ts";

/**
 * Kinds of statement that DelegateOS does not define. Each kind has a tag, so a signature of one kind is invalid for
 * another kind.
 */
export type TaggedKind = "checkpoint" | "keyrevocation" | "logentry" | "loghead" | "rootsuccession";

const utf8 = new TextEncoder();

/** Returns BLAKE2b-256 of the kind's tag and a value's canonical JSON. */
export function taggedDigest(engine: CryptoEngine, kind: TaggedKind, value: unknown): Uint8Array {
  const tag = utf8.encode(`delegateos-${kind}-v1\0`);
  const body = canonicalBytes(value);
  const bytes = new Uint8Array(tag.length + body.length);
  bytes.set(tag);
  bytes.set(body, tag.length);
  return engine.blake2b256(bytes);
}

/** Signs a statement; returns the signature in base64url. */
export function signTagged(engine: CryptoEngine, kind: TaggedKind, value: unknown, keypair: Keypair): string {
  return encodeBase64Url(engine.sign(taggedDigest(engine, kind, value), keypair.privateKey));
}

/** Whether a principal signed a statement. */
export function isTaggedBy(
  engine: CryptoEngine,
  kind: TaggedKind,
  value: unknown,
  signer: string,
  signature: string,
): boolean {
  const key = parsePrincipal(signer);
  const bytes = decodeBase64Url(signature);
  return (
    key !== undefined && bytes !== undefined && engine.verify(bytes, taggedDigest(engine, kind, value), key)
  );
}
