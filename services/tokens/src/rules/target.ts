const HTTP = /^https?:\/\/[\x21-\x7e]+$/i;
const UNRESERVED = /^[A-Za-z0-9\-._~]$/;

/**
 * Normalizes a URL for the comparison with the claim `htu` (RFC 9449 section 4.3), as RFC 3986 sections 6.2.2 and 6.2.3
 * define. Drops query, fragment and a default port. Scheme and host become lower case, and an empty path becomes `/`.
 * Resolves dot segments, and decodes escapes of unreserved characters. A trailing slash of a longer path stays, because
 * RFC 3986 treats `/a` and `/a/` as two resources.
 *
 * @returns undefined for a URL whose scheme is not http or https, or that contains a user name or password
 */
export function normaliseTarget(address: string): string | undefined {
  // The URL parser would remove blanks, and would treat a backslash as a slash. Valid addresses contain neither.
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

/** Whether two addresses are equal after normalization. False if one cannot be normalized. */
export function isSameTarget(one: string, other: string): boolean {
  const normalised = normaliseTarget(one);
  return normalised !== undefined && normalised === normaliseTarget(other);
}

function normaliseEscape(triplet: string): string {
  const character = String.fromCharCode(Number.parseInt(triplet.slice(1), 16));
  return UNRESERVED.test(character) ? character : triplet.toUpperCase();
}
