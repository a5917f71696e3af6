import { decodeBase64Url, encodeBase64Url } from "./base64url.ts";
import { DeputeError, ErrorReason } from "./errors.ts";

/** Items on a page when the request names no size. */
export const DEFAULT_PAGE_SIZE = 50;

/** The most items on a page; a request for more gets this many. */
export const MAX_PAGE_SIZE = 1000;

// Longer than any token that this file writes for keys within the contracts' limits.
const MAX_TOKEN_LENGTH = 4096;

/** Where a page ends: the sort key of its last item, column by column. */
export type PagePosition = readonly (string | number)[];

/** What a list is filtered and ordered by; a token serves only the list it was made for. */
export type PageFilters = Readonly<
  Record<string, string | number | boolean | bigint | readonly (string | number)[] | undefined>
>;

/** The number of items to answer with: the default for 0, at most {@link MAX_PAGE_SIZE}. */
export function pageSize(requested: number): number {
  return requested <= 0 ? DEFAULT_PAGE_SIZE : Math.min(requested, MAX_PAGE_SIZE);
}

/** An opaque token for the page after `position`. It is not signed: a position is a place in the caller's own list. */
export function encodePageToken(position: PagePosition, filters: PageFilters): string {
  const json = JSON.stringify([digestOf(filters), ...position]);
  return encodeBase64Url(new TextEncoder().encode(json));
}

/**
 * The position in a token; undefined for the empty token, which asks for the first page.
 *
 * @throws DeputeError PAGE_TOKEN_INVALID for anything that {@link encodePageToken} did not make for these filters
 */
export function decodePageToken(token: string, filters: PageFilters): PagePosition | undefined {
  if (token === "") return undefined;
  const content = parse(token);
  if (content === undefined || content[0] !== digestOf(filters)) {
    throw new DeputeError(
      ErrorReason.PAGE_TOKEN_INVALID,
      "page_token is not of this list with these filters",
      {
        violations: [
          { field: "page_token", description: "not a page token of this list with these filters" },
        ],
      },
    );
  }
  return content.slice(1);
}

function parse(token: string): (string | number)[] | undefined {
  const bytes = token.length > MAX_TOKEN_LENGTH ? undefined : decodeBase64Url(token);
  if (bytes === undefined) return undefined;
  try {
    const content: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    const isKey = (part: unknown) => typeof part === "string" || typeof part === "number";
    return Array.isArray(content) && content.every(isKey) ? content : undefined;
  } catch {
    return undefined;
  }
}

/** FNV-1a, 64 bit, of the filters with their names in order: it tells lists apart and guards nothing. */
function digestOf(filters: PageFilters): string {
  const entries = Object.entries(filters)
    .filter(([, value]) => value !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const text = JSON.stringify(entries, (_, value) => (typeof value === "bigint" ? `${value}n` : value));
  let hash = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(text)) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  }
  return hash.toString(36);
}
