import { createHash } from "node:crypto";
import { canonicalBytes, encodeBase64Url } from "@depute/core";

/** The claim `ard` of a proof: base64url of the SHA-256 of the canonical JSON of a call's arguments. Throws CanonicalError. */
export function argumentsDigest(args: unknown): string {
  return digest(args);
}

/** What a tool is, so that another one under its name is noticed: the digest of its whole definition. Throws CanonicalError. */
export function definitionDigest(tool: Readonly<Record<string, unknown>>): string {
  const { _meta, ...definition } = tool;
  return digest(definition);
}

/** What stands for a token where it is remembered: nothing that could be presented. */
export function tokenKey(token: string): string {
  return createHash("sha256").update(token).digest("base64url");
}

function digest(value: unknown): string {
  return encodeBase64Url(createHash("sha256").update(canonicalBytes(value)).digest());
}
