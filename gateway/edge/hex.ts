/** Returns a digest as lower-case hexadecimal digits. HTTP headers and documents contain digests in this form. */
export function hexOf(digest: Uint8Array): string {
  return Buffer.from(digest.buffer, digest.byteOffset, digest.byteLength).toString("hex");
}
