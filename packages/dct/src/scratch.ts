import { decodeBase64UrlInto, decodedBytes } from "@depute/core";

/**
 * Bytes that are looked at once, in one place for all of them: a place of its own for each costs more than what is done
 * with it. What is given is good until the next call, so whoever gets it neither keeps it nor waits.
 */
const scratch = new Uint8Array(65_536);
const utf8 = new TextEncoder();

/** The UTF-8 of a text. */
export function utf8Of(text: string): Uint8Array {
  // No character takes more than three bytes.
  if (text.length * 3 > scratch.length) return utf8.encode(text);
  return scratch.subarray(0, utf8.encodeInto(text, scratch).written);
}

/** The bytes of a base64url text, as decodeBase64Url has them. */
export function bytesOf(text: string): Uint8Array | undefined {
  const length = decodedBytes(text);
  return decodeBase64UrlInto(length > scratch.length ? new Uint8Array(length) : scratch, text);
}
