import { parseStrictJson } from "@depute/core";
import { type CryptoEngine, type RevocationEntry, verifyRevocation } from "@depute/dct";

/**
 * Maximum number of entries that the service takes from one response. A source with more entries must return them in
 * pages.
 */
export const MAX_LISTED = 10_000;

/** The response of a revocation endpoint (DelegateOS 4.2, 4.3). */
export interface ForeignList {
  /** Entries with valid signatures. Their revokers need not be rightful. */
  readonly entries: RevocationEntry[];
  /** The number of entries that are malformed or have an invalid signature. */
  readonly refused: number;
  /** The cursor with which the next request continues; undefined if the response has no valid cursor. */
  readonly next: number | undefined;
}

/**
 * Reads the response of a revocation endpoint: an object with `entries` and optionally `nextSequence`, or a bare array
 * as RevocationList.toJSON writes it. Returns undefined for other responses. If one entry is malformed, the function
 * still returns the valid entries, because each entry has its own signature.
 */
export function readForeignList(engine: CryptoEngine, json: string): ForeignList | undefined {
  const value = parse(json);
  const listed = Array.isArray(value) ? value : (value as { entries?: unknown } | undefined)?.entries;
  if (!Array.isArray(listed)) return undefined;
  const entries: RevocationEntry[] = [];
  let refused = 0;
  for (const one of listed.slice(0, MAX_LISTED)) {
    const verified = verifyRevocation(engine, one);
    if (verified.ok) entries.push(verified.value);
    else refused++;
  }
  const next = (value as { nextSequence?: unknown }).nextSequence;
  return {
    entries,
    refused,
    next: Number.isSafeInteger(next) && (next as number) >= 0 ? (next as number) : undefined,
  };
}

/** Returns the notification that pushes a revocation to a peer (DelegateOS 9.5). */
export function revokeNotification(entry: RevocationEntry): string {
  return JSON.stringify({ jsonrpc: "2.0", method: "delegateos/revoke", params: { revocation: entry } });
}

/** Returns the address of the next page of a source. */
export function pageAddress(source: string, since: number): string {
  const address = new URL(source);
  address.searchParams.set("since", String(since));
  return address.href;
}

/**
 * HTTP statuses with which a peer rejects the entry itself. Other statuses, such as 401 or 404, have causes that an
 * operator can correct, so a retry may succeed.
 */
const UNWANTED: ReadonlySet<number> = new Set([400, 409, 413, 422]);

/**
 * Returns the result of a push: `taken`, `later` (the service must try again), or `refused` (the peer rejects the
 * entry).
 */
export function pushOutcome(status: number): "taken" | "later" | "refused" {
  if (status >= 200 && status < 300) return "taken";
  return UNWANTED.has(status) ? "refused" : "later";
}

function parse(json: string): unknown {
  try {
    return parseStrictJson(json);
  } catch {
    return undefined;
  }
}
