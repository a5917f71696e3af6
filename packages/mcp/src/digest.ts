import { createHash, hash } from "node:crypto";
import { canonicalBytes, encodeBase64Url } from "@depute/core";
import { argumentsDigest as digestOfArguments } from "@depute/dct";
import { nativeEngine } from "@depute/dct/native";

/**
 * Returns the value of the claim `ard` that a proof must contain for a call with these arguments. Throws
 * CanonicalError.
 */
export function argumentsDigest(args: unknown): string {
  return digestOfArguments(nativeEngine, args);
}

/**
 * Computes the digest of a tool's definition, without `_meta`. If a server replaces the tool behind a name, the
 * digest changes. Throws CanonicalError.
 */
export function definitionDigest(tool: Readonly<Record<string, unknown>>): string {
  const { _meta, ...definition } = tool;
  return encodeBase64Url(createHash("sha256").update(canonicalBytes(definition)).digest());
}

/** Returns the key under which a token is cached. The key is a digest, so it cannot be presented as a token. */
export function tokenKey(token: string): string {
  return hash("sha256", token, "base64url");
}
