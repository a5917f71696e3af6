import { create, type JsonValue } from "@bufbuild/protobuf";
import { RevocationListSchema } from "@depute/contracts/delegateos/v0/revocation_pb";
import { invalid } from "@depute/core";
import { encode } from "@depute/wire";
import type { Clients } from "../../src/clients.ts";
import type { WireCall } from "../../src/wire-call.ts";

/** The most entries of one answer. */
const MAX_PAGE_SIZE = 1000;

/**
 * The list of revocations, as a revocation endpoint answers it (DelegateOS 4.2, 4.3): in its order, after a sequence.
 *
 * @param query `since`: the last sequence that is known, 0 when absent; `page_size`: how many, 50 when absent
 * @throws DeputeError INVALID_REQUEST
 */
export async function revocationList(
  { revocations }: Pick<Clients, "revocations">,
  query: URLSearchParams,
  call: WireCall,
): Promise<JsonValue> {
  const since = readCount(query, "since", Number.MAX_SAFE_INTEGER);
  const pageSize = readCount(query, "page_size", MAX_PAGE_SIZE);
  const { revocations: logged, nextSequence } = await revocations.listRevocations(
    { afterSequence: BigInt(since), pageSize },
    call.asCaller,
  );
  // A key that is revoked as a whole has no entry of the text's form; its blocks' entries follow it in the log.
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
    throw invalid(name, `must be given once, as a whole number from 0 to ${max}`);
  }
  return count;
}
