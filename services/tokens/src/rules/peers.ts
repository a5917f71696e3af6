import { parseStrictJson } from "@depute/core";
import { type CryptoEngine, type RevocationEntry, verifyRevocation } from "@depute/dct";

/** Most entries of a list that are looked at; the rest is met by the next poll, or never if the list does not page. */
export const MAX_LISTED = 10_000;

/** What a revocation endpoint answered (DelegateOS 4.2, 4.3). */
export interface ForeignList {
  /** Entries whose signatures hold. Whether their revokers may is not said yet. */
  readonly entries: RevocationEntry[];
  /** Entries that are none. */
  readonly refused: number;
  /** Where the next poll goes on; undefined for a list that is complete. */
  readonly next: number | undefined;
}

/**
 * Reads what a revocation endpoint answered: an object with `entries` and, where it pages, `nextSequence`, or the array
 * alone, as RevocationList.toJSON writes it. Undefined for what is neither. An entry that is none does not spoil the
 * others: the peer is believed nothing, and its revokers only what they signed.
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

/** The notification that tells a peer of a revocation (DelegateOS 9.5). */
export function revokeNotification(entry: RevocationEntry): string {
  return JSON.stringify({ jsonrpc: "2.0", method: "delegateos/revoke", params: { revocation: entry } });
}

/** The address of the next page of a source. */
export function pageAddress(source: string, since: number): string {
  const address = new URL(source);
  address.searchParams.set("since", String(since));
  return address.href;
}

/** Answers that are about the entry; any other, as 401 or 404, is about the way to the peer, and may be mended. */
const UNWANTED: ReadonlySet<number> = new Set([400, 409, 413, 422]);

/** What becomes of a push: `later` for what may go well another time, `refused` for what the peer does not want. */
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
