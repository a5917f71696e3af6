/** Maximum length, in characters, of a `data:` URI that the service decodes; enough for 1 MiB in base64. */
export const MAX_DATA_URI = 1_500_000;

/**
 * Decodes a `data:` URI (RFC 2397). Returns undefined if the text is not a `data:` URI, is malformed or is too long.
 */
export function dataUriBytes(uri: string): Uint8Array | undefined {
  if (!/^data:/i.test(uri) || uri.length > MAX_DATA_URI) return undefined;
  const comma = uri.indexOf(",");
  if (comma < 0) return undefined;
  const body = uri.slice(comma + 1);
  if (!/;\s*base64\s*$/i.test(uri.slice("data:".length, comma))) return percentDecoded(body);
  if (!body.includes("%")) return base64Decoded(body);
  const text = percentDecoded(body);
  return text === undefined ? undefined : base64Decoded(new TextDecoder().decode(text));
}

/**
 * Decodes base64 (RFC 4648 section 4), which RFC 2397 requires. Also accepts white space and missing padding, because
 * browsers accept them.
 */
function base64Decoded(text: string): Uint8Array | undefined {
  const bare = text.replace(/[\t\n\f\r ]/g, "");
  const digits = bare.length % 4 === 0 ? bare.replace(/={1,2}$/, "") : bare;
  if (digits.length % 4 === 1 || !/^[A-Za-z0-9+/]*$/.test(digits)) return undefined;
  return Uint8Array.from(Buffer.from(digits, "base64"));
}

function percentDecoded(text: string): Uint8Array | undefined {
  if (/%(?![0-9A-Fa-f]{2})/.test(text)) return undefined;
  const utf8 = new TextEncoder().encode(text);
  if (!text.includes("%")) return utf8;
  const bytes = new Uint8Array(utf8.length);
  let length = 0;
  for (let i = 0; i < utf8.length; i++) {
    const byte = utf8[i] ?? 0;
    if (byte === PERCENT) {
      bytes[length++] = Number.parseInt(String.fromCharCode(utf8[i + 1] ?? 0, utf8[i + 2] ?? 0), 16);
      i += 2;
    } else bytes[length++] = byte;
  }
  return bytes.slice(0, length);
}

const PERCENT = 0x25;
