import { decodeBase64Url, encodeBase64Url } from "./bytes-as-text.ts";
import { DeputeError, ErrorReason } from "./errors.ts";

/** Number of items on a page when the request names no size. */
export const DEFAULT_PAGE_SIZE = 50;

/** Maximum number of items on a page. A request for more items gets this number. */
export const MAX_PAGE_SIZE = 1000;

// Maximum length of a page token in characters. encodePageToken never exceeds this length, because the protobuf
// contracts limit the length of the sort keys.
const MAX_TOKEN_LENGTH = 4096;

/** The end of a page: the sort key of the page's last item, column by column. */
export type PagePosition = readonly (string | number)[];

/** The filters and the order of a list. A page token is valid only for a list with the same filters and order. */
export type PageFilters = Readonly<
  Record<string, string | number | boolean | bigint | readonly (string | number)[] | undefined>
>;

/**
 * Returns the number of items on a page: {@link DEFAULT_PAGE_SIZE} for 0 or less, and at most {@link MAX_PAGE_SIZE}.
 */
export function pageSize(requested: number): number {
  return requested <= 0 ? DEFAULT_PAGE_SIZE : Math.min(requested, MAX_PAGE_SIZE);
}

/**
 * Returns an opaque page token for the page after `position`. The page token is not signed, because it only states a
 * position in the caller's own list.
 */
export function encodePageToken(position: PagePosition, filters: PageFilters): string {
  const json = JSON.stringify([digestOf(filters), ...position]);
  return encodeBase64Url(new TextEncoder().encode(json));
}

/**
 * Returns the position in a page token; undefined for an empty text, which requests the first page.
 *
 * @throws DeputeError PAGE_TOKEN_INVALID for a text that is not a page token, and for a page token of other filters
 */
export function decodePageToken(token: string, filters: PageFilters): PagePosition | undefined {
  if (token === "") return undefined;
  const content = parse(token);
  if (content === undefined || content[0] !== digestOf(filters)) {
    throw new DeputeError(
      ErrorReason.PAGE_TOKEN_INVALID,
      "page_token is not a token of this list; repeat the call without it, or with the filters of the earlier call",
      {
        violations: [
          { field: "page_token", description: "is not a page token of this list with these filters" },
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

/**
 * Returns the 64-bit FNV-1a hash of the filters and their names, in the order of the names. The hash
 * distinguishes lists, but does not protect against forgery.
 */
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
