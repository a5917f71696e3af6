import { createHash } from "node:crypto";
import { canonicalBytes, encodeBase64Url } from "@depute/core";
import { argumentsDigest as digestOfArguments } from "@depute/dct";
import { nativeEngine } from "@depute/dct/native";

/** The claim `ard` of a proof of a call with these arguments. Throws CanonicalError. */
export function argumentsDigest(args: unknown): string {
  return digestOfArguments(nativeEngine, args);
}

/** What a tool is, so that another one under its name is noticed: the digest of its whole definition. Throws CanonicalError. */
export function definitionDigest(tool: Readonly<Record<string, unknown>>): string {
  const { _meta, ...definition } = tool;
  return encodeBase64Url(createHash("sha256").update(canonicalBytes(definition)).digest());
}

/** What stands for a token where it is remembered: nothing that could be presented. */
export function tokenKey(token: string): string {
  return createHash("sha256").update(token).digest("base64url");
}
