import { hash } from "node:crypto";

/**
 * SHA-256 of bytes, or of a text in UTF-8, in lower-case hexadecimal. It stands at an address of its own,
 * `@depute/core/sha256`, because it is Node's and the rest of the package runs in a browser as well.
 */
export function sha256Hex(content: Uint8Array | string): string {
  return hash("sha256", content, "hex");
}
