import type { JsonValue } from "@bufbuild/protobuf";
import { canonicalBytes } from "@depute/core";

/** The lengths of the version hashes that NEKTE publishes. Hashes of both lengths are prefixes of the same digest. */
export const HASH_LENGTHS = ["8", "16"] as const;

/** Minimum number of digits in a reference to a version. */
export const MIN_HASH_DIGITS = 8;

const HEX_DIGITS = /^[0-9a-f]{8,64}$/;

/** Returns SHA-256 in lower-case hex. The function is a parameter of the rules, because rules import no Node module. */
export type Sha256Hex = (bytes: Uint8Array) => string;

/**
 * Returns the digest of a capability's version: SHA-256 of the canonical JSON of `{input, output}`, 64 digits in lower
 * case. Only the schemas count, so cached versions stay valid when the description changes. (NEKTE 1)
 *
 * @throws CanonicalError when a schema has no canonical form
 */
export function versionDigest(
  schemas: { readonly input: JsonValue; readonly output: JsonValue },
  sha256: Sha256Hex,
): string {
  return sha256(canonicalBytes({ input: schemas.input, output: schemas.output }));
}

/** Returns the version hash for callers: the first digits of the digest. */
export function versionHash(digest: string, length: number): string {
  return digest.slice(0, length);
}

/**
 * Whether a caller's cached hash is the hash of the version with this digest. Depute's choice: any prefix of at least 8
 * digits matches, ignoring case, because both published lengths are prefixes.
 */
export function isOfVersion(hash: string, digest: string): boolean {
  const digits = hash.toLowerCase();
  return HEX_DIGITS.test(digits) && digest.startsWith(digits);
}
