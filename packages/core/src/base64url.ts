const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/** Value of each character code below 128; 255 where the character is not of the alphabet. */
const VALUES = new Uint8Array(128).fill(255);
for (let i = 0; i < ALPHABET.length; i++) VALUES[ALPHABET.charCodeAt(i)] = i;

const ascii = new TextDecoder();

/** Where the characters of short texts are put, so that not each takes memory of its own. */
const scratch = new Uint8Array(1024);

/** base64url (RFC 4648 section 5) of `bytes`, without padding. */
export function encodeBase64Url(bytes: Uint8Array): string {
  const length = Math.ceil((bytes.length * 4) / 3);
  const out = length <= scratch.length ? scratch : new Uint8Array(length);
  let at = 0;
  for (let i = 0; i < bytes.length; i += 3) {
    const left = bytes.length - i;
    const group = (byte(bytes, i) << 16) | (byte(bytes, i + 1) << 8) | byte(bytes, i + 2);
    out[at++] = ALPHABET.charCodeAt(group >>> 18);
    out[at++] = ALPHABET.charCodeAt((group >>> 12) & 63);
    if (left > 1) out[at++] = ALPHABET.charCodeAt((group >>> 6) & 63);
    if (left > 2) out[at++] = ALPHABET.charCodeAt(group & 63);
  }
  return ascii.decode(out.subarray(0, length));
}

/**
 * The bytes of a base64url text, or undefined unless `text` is exactly what encodeBase64Url writes: no padding, no
 * white space, no other alphabet, unused bits zero. A lax decoder gives one key several spellings, and every
 * comparison, cache and block list that works on text can then be dodged.
 */
export function decodeBase64Url(text: string): Uint8Array | undefined {
  if (text.length % 4 === 1) return undefined;
  return decodeBase64UrlInto(new Uint8Array(decodedBytes(text)), text);
}

/** How many bytes a base64url text stands for, if it is one. */
export function decodedBytes(text: string): number {
  return Math.floor((text.length * 3) / 4);
}

/** As decodeBase64Url, into the beginning of `out`, which has room for decodedBytes; gives that beginning. */
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
