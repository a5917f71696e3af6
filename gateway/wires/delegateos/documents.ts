import { create, type JsonValue } from "@bufbuild/protobuf";
import { RevocationListSchema } from "@depute/contracts/delegateos/v0/revocation_pb";
import { invalid } from "@depute/core";
import { encode } from "@depute/wire";
import type { Clients } from "../../edge/clients.ts";
import type { WireCall } from "../../edge/wire-call.ts";

/** Maximum number of entries in one answer. */
const MAX_PAGE_SIZE = 1000;

/**
 * Returns the list of revocations in order, after a sequence, in the form of a revocation endpoint (DelegateOS 4.2,
 * 4.3).
 *
 * @param query `since`: the last sequence that the client has, default 0; `page_size`: the number of entries, default
 *   50
 * @throws DeputeError INVALID_REQUEST
 */
export async function revocationList(
  { revocations }: Pick<Clients, "revocations">,
  query: URLSearchParams,
  call: WireCall,
): Promise<JsonValue> {
  const since = readCount(query, "since", Number.MAX_SAFE_INTEGER);
  const pageSize = readCount(query, "page_size", MAX_PAGE_SIZE);
  const start = { afterSequence: BigInt(since), pageSize };
  let page = await revocations.listRevocations(start, call.asCaller);
  // The cursor is the sequence of the page's last entry. An empty page has no entry, so this loop reads the next page.
  while (page.revocations.length === 0 && page.nextPageToken !== "")
    page = await revocations.listRevocations({ ...start, pageToken: page.nextPageToken }, call.asCaller);
  const { revocations: logged, nextPageToken, lastSequence } = page;
  const nextSequence = nextPageToken === "" ? lastSequence : (logged.at(-1)?.sequence ?? lastSequence);
  // Skips revocations of whole keys, for which DelegateOS defines no entry. Entries for the key's blocks come later in
  // the log.
  const blocks = logged.flatMap(({ entry, sequence }) => (entry === undefined ? [] : [{ entry, sequence }]));
  const list = create(RevocationListSchema, {
    entries: blocks.map(({ entry }) => entry),
    sequences: blocks.map(({ sequence }) => sequence),
    nextSequence: nextSequence > BigInt(since) ? nextSequence : BigInt(since),
  });
  return encode(RevocationListSchema, list);
}

function readCount(query: URLSearchParams, name: string, max: number): number {
  const texts = query.getAll(name);
  if (texts.length === 0) return 0;
  const [text = ""] = texts;
  const count = Number(text);
  if (texts.length > 1 || !/^\d{1,16}$/.test(text) || count > max) {
    throw invalid(name, `must occur only once, as a whole number from 0 to ${max}`);
  }
  return count;
}
