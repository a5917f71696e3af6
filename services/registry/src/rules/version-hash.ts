import type { JsonValue } from "@bufbuild/protobuf";
import { canonicalBytes } from "@depute/core";

/** Digits that NEKTE's version hashes are published with; both are prefixes of one digest. */
export const HASH_LENGTHS = ["8", "16"] as const;

/** The fewest digits by which a version may be named. */
export const MIN_HASH_DIGITS = 8;

const HEX_DIGITS = /^[0-9a-f]{8,64}$/;

/** SHA-256 in lower-case hex. Passed in, because rules import no Node module. */
export type Sha256Hex = (bytes: Uint8Array) => string;

/**
 * The digest behind a capability's version hash: SHA-256 of the canonical JSON of `{input, output}`, 64 digits in
 * lower case. Nothing else of a capability counts, so that a better description leaves cached versions valid. (NEKTE 1)
 *
 * @throws CanonicalError when a schema has no canonical form
 */
export function versionDigest(
  schemas: { readonly input: JsonValue; readonly output: JsonValue },
  sha256: Sha256Hex,
): string {
  return sha256(canonicalBytes({ input: schemas.input, output: schemas.output }));
}

/** The version hash as it is sent: the digest's first digits. */
export function versionHash(digest: string, length: number): string {
  return digest.slice(0, length);
}

/**
 * Whether a hash that a caller has cached names the version with this digest. Depute's choice: any prefix of at least 8
 * digits does, in either case of letters, because both published lengths are prefixes of one digest.
 */
export function isOfVersion(hash: string, digest: string): boolean {
  const digits = hash.toLowerCase();
  return HEX_DIGITS.test(digits) && digest.startsWith(digits);
}
