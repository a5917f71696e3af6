import { hash } from "node:crypto";
import { type DescMessage, type MessageShape, toJson } from "@bufbuild/protobuf";
import { canonicalJson } from "./canonical.ts";

/**
 * Returns SHA-256 of bytes, or of a string in UTF-8, in lower-case hexadecimal. This file has its own entry point,
 * `@depute/core/sha256`, because it needs Node.js. All other files of the package also run in a browser.
 */
export function sha256Hex(content: Uint8Array | string): string {
  return hash("sha256", content, "hex");
}

/**
 * Returns SHA-256 of a message's canonical JSON, in hexadecimal. The order of members does not change the hash.
 * (RFC 8785)
 */
export function messageDigest<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): string {
  return sha256Hex(canonicalJson(toJson(schema, message)));
}
