import { createHash } from "node:crypto";
import { canonicalJson, parseStrictJson } from "@depute/core";
import { portableEngine } from "@depute/dct";
import { isOfVersion, versionDigest } from "@depute/registry/version-hash";
import { hexText, type Operations } from "./answer.ts";

const sha256 = (data: Uint8Array | string) => createHash("sha256").update(data).digest("hex");

export const canonicalJsonOperations: Operations = {
  canonicalize({ json }) {
    let canonical: string;
    try {
      canonical = canonicalJson(parseStrictJson(json));
    } catch {
      return { refusal: "no_canonical_form" };
    }
    const utf8 = Buffer.from(canonical);
    const digests = { sha256Hex: sha256(utf8), blake2b256Hex: hexText(portableEngine.blake2b256(utf8)) };
    return { expected: { canonical, utf8Hex: hexText(utf8), ...digests } };
  },

  "version-hash": ({ input, output }) => {
    const digestHex = versionDigest({ input, output }, sha256);
    return { expected: { digestHex, hash8: digestHex.slice(0, 8), hash16: digestHex.slice(0, 16) } };
  },

  "names-version": ({ hash, digestHex }) => ({ expected: { names: isOfVersion(hash, digestHex) } }),
};
