/** Longest `data:` URI that is decoded, in characters: 1 MiB of bytes in base64. */
export const MAX_DATA_URI = 1_500_000;

/** The bytes of a `data:` URI (RFC 2397), or undefined for what is none. */
export function dataUriBytes(uri: string): Uint8Array | undefined {
  if (!/^data:/i.test(uri) || uri.length > MAX_DATA_URI) return undefined;
  const comma = uri.indexOf(",");
  if (comma < 0) return undefined;
  const isBase64 = /;\s*base64\s*$/i.test(uri.slice("data:".length, comma));
  const body = percentDecoded(uri.slice(comma + 1));
  if (body === undefined || !isBase64) return body;
  try {
    // RFC 2397 has base64 of RFC 4648 section 4; padding may be missing in what browsers take.
    return Uint8Array.from(atob(new TextDecoder().decode(body)), (char) => char.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function percentDecoded(text: string): Uint8Array | undefined {
  if (/%(?![0-9A-Fa-f]{2})/.test(text)) return undefined;
  const bytes: number[] = [];
  const utf8 = new TextEncoder().encode(text);
  for (let i = 0; i < utf8.length; i++) {
    const byte = utf8[i] ?? 0;
    if (byte === PERCENT) {
      bytes.push(Number.parseInt(String.fromCharCode(utf8[i + 1] ?? 0, utf8[i + 2] ?? 0), 16));
      i += 2;
    } else bytes.push(byte);
  }
  return Uint8Array.from(bytes);
}

const PERCENT = 0x25;
