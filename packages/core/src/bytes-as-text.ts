const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/** The 6-bit value of each base64url character, by character code; 255 for any other character. */
const VALUES = new Uint8Array(128).fill(255);
for (let i = 0; i < ALPHABET.length; i++) VALUES[ALPHABET.charCodeAt(i)] = i;

const ascii = new TextDecoder();

/** A shared buffer for short texts, so that an encoding of a short text allocates no buffer. */
const scratch = new Uint8Array(1024);

/** Returns base64url (RFC 4648 section 5) of `bytes`, without padding. */
export function encodeBase64Url(bytes: Uint8Array): string {
  const length = Math.ceil((bytes.length * 4) / 3);
  const out = length <= scratch.length ? scratch : new Uint8Array(length);
  let at = 0;
  for (let i = 0; i < bytes.length; i += 3) {
    const remaining = bytes.length - i;
    const group = (byte(bytes, i) << 16) | (byte(bytes, i + 1) << 8) | byte(bytes, i + 2);
    out[at++] = ALPHABET.charCodeAt(group >>> 18);
    out[at++] = ALPHABET.charCodeAt((group >>> 12) & 63);
    if (remaining > 1) out[at++] = ALPHABET.charCodeAt((group >>> 6) & 63);
    if (remaining > 2) out[at++] = ALPHABET.charCodeAt(group & 63);
  }
  return ascii.decode(out.subarray(0, length));
}

/**
 * Decodes base64url. Returns undefined unless `text` is exactly the text that encodeBase64Url returns for the bytes.
 * Padding, white space, another alphabet and unused bits that are not zero are refused. A lenient decoder gives one
 * key several spellings, which would bypass every comparison, cache and block list on texts.
 */
export function decodeBase64Url(text: string): Uint8Array | undefined {
  if (text.length % 4 === 1) return undefined;
  return decodeBase64UrlInto(new Uint8Array(decodedBytes(text)), text);
}

/** Returns the number of bytes that a base64url text of this length encodes. The text itself is not checked. */
export function decodedBytes(text: string): number {
  return Math.floor((text.length * 3) / 4);
}

/**
 * Decodes like decodeBase64Url, but writes into `out`, which must have room for decodedBytes. Returns the written
 * part of `out`; undefined for a text that decodeBase64Url refuses.
 */
export function decodeBase64UrlInto(out: Uint8Array, text: string): Uint8Array | undefined {
  if (text.length % 4 === 1) return undefined;
  let at = 0;
  let bits = 0;
  let buffer = 0;
  for (let i = 0; i < text.length; i++) {
    const value = VALUES[text.charCodeAt(i)] ?? 255;
    if (value === 255) return undefined;
    buffer = ((buffer << 6) | value) & 0xffff;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      out[at++] = (buffer >>> bits) & 255;
    }
  }
  if ((buffer & ((1 << bits) - 1)) !== 0) return undefined;
  return at === out.length ? out : out.subarray(0, at);
}

function byte(bytes: Uint8Array, i: number): number {
  return bytes[i] ?? 0;
}

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** Returns the bytes in lower-case hexadecimal, two digits each. */
export function encodeHex(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += HEX[byte];
  return text;
}

/**
 * Returns the bytes of a text in lower-case hexadecimal; undefined for any other text. Upper case is refused, so
 * that equal bytes always have equal texts.
 */
export function decodeHex(text: string): Uint8Array | undefined {
  if (!/^([0-9a-f]{2})*$/.test(text)) return undefined;
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}
