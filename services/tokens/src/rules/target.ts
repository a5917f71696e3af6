const HTTP = /^https?:\/\/[\x21-\x7e]+$/i;
const UNRESERVED = /^[A-Za-z0-9\-._~]$/;

/**
 * Normalizes an address for the comparison of claim `htu` (RFC 9449 section 4.3): without query and fragment, by RFC
 * 3986 sections 6.2.2 and 6.2.3. Scheme and host become lower case, a default port is dropped, and an empty path
 * becomes `/`. Dot segments are resolved, and escapes of unreserved characters are decoded. A trailing slash of a
 * longer path stays, because RFC 3986 treats `/a` and `/a/` as two resources.
 *
 * @returns undefined for an address that is not http, or that contains a user name
 */
export function normaliseTarget(address: string): string | undefined {
  // The URL parser would trim blanks and treat a backslash as a slash. Valid addresses contain neither.
  if (!HTTP.test(address) || address.includes("\\")) return undefined;
  let url: URL;
  try {
    url = new URL(address);
  } catch {
    return undefined;
  }
  if (url.username !== "" || url.password !== "") return undefined;
  return url.origin + url.pathname.replace(/%[0-9A-Fa-f]{2}/g, normaliseEscape);
}

/** Whether two addresses are the same target after normalization. */
export function isSameTarget(one: string, other: string): boolean {
  const normalised = normaliseTarget(one);
  return normalised !== undefined && normalised === normaliseTarget(other);
}

function normaliseEscape(triplet: string): string {
  const character = String.fromCharCode(Number.parseInt(triplet.slice(1), 16));
  return UNRESERVED.test(character) ? character : triplet.toUpperCase();
}
