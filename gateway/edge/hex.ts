/** Returns a digest as lower-case hexadecimal digits, the form in HTTP headers and documents. */
export function hexOf(digest: Uint8Array): string {
  return Buffer.from(digest.buffer, digest.byteOffset, digest.byteLength).toString("hex");
}
