const HTTP = /^https?:\/\/[\x21-\x7e]+$/i;
const UNRESERVED = /^[A-Za-z0-9\-._~]$/;

/**
 * An address in the form in which RFC 9449 section 4.3 compares claim `htu` with the request's: without query and
 * fragment, after the normalisations of RFC 3986 sections 6.2.2 and 6.2.3. Scheme and host are lower case, a default
 * port is left out, an empty path is `/`, dot segments are resolved, escapes of unreserved characters are undone.
 *
 * A slash at the end of a longer path is kept, since RFC 3986 calls `/a` and `/a/` two resources.
 *
 * @returns undefined for what is no http address, or one with a user's name, which no request has
 */
export function normaliseTarget(address: string): string | undefined {
  // The parser would trim blanks and read a backslash as a slash; no address has either.
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

/** Whether two addresses are the same target of a proof. */
export function isSameTarget(one: string, other: string): boolean {
  const normalised = normaliseTarget(one);
  return normalised !== undefined && normalised === normaliseTarget(other);
}

function normaliseEscape(triplet: string): string {
  const character = String.fromCharCode(Number.parseInt(triplet.slice(1), 16));
  return UNRESERVED.test(character) ? character : triplet.toUpperCase();
}
