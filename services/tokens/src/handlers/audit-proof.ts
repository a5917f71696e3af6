import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  type AuditSeal,
  AuditSealSchema,
  type GetAuditRecordProofResponse,
  GetAuditRecordProofResponseSchema,
} from "@depute/contracts/depute/tokens/v1/audit_service_pb";
import { DeputeError, ErrorReason, formatTime, parseTime } from "@depute/core";
import { isRooted, type RootedAuditSeal, rootedAuditSealBytes } from "@depute/dct/transparency";
import { ownHeaders } from "@depute/service";
import type { ReadTx } from "@depute/store";
import type { TokensContext } from "../context.ts";
import { lineOf, toRecord } from "../rules/audit-message.ts";
import { type AuditEntry, type AuditFilter, matchesAudit } from "../rules/audit-record.ts";
import { readDecisions } from "../store/audit-rows.ts";
import { findSeal, readState, type SealRow } from "../store/audit-seal-rows.ts";
import { auditPath } from "../store/audit-tree.ts";

const DAY_MS = 24 * 3_600_000;

/**
 * Proves that a record belongs to the seal of its day, and that the transparency log contains the seal.
 *
 * @param filter selects the records that the caller may read
 * @throws DeputeError AUDIT_RECORD_NOT_FOUND, AUDIT_DAY_NOT_SEALED, AUDIT_PROOF_UNAVAILABLE; the other errors of the
 * verifier service
 */
export async function proveAuditRecord(
  tokens: TokensContext,
  sequence: number,
  filter: AuditFilter,
): Promise<GetAuditRecordProofResponse> {
  const { engine, store } = tokens;
  const { entry, seal, hashes } = await store.read(async (tx) => {
    const found = await readEntry(tx, sequence, filter);
    const sealed = await readSeal(tx, sequence);
    const path = await auditPath(tx, engine.sha256, { seal: sealed, id: sequence });
    if (path === undefined) throw proofUnavailable(sealed.day);
    return { entry: found, seal: sealed, hashes: path };
  });
  const inclusion = await inclusionOf(tokens, seal);
  return create(GetAuditRecordProofResponseSchema, {
    ...{ line: lineOf(toRecord(entry)), seal: sealMessage(seal), hashes, inclusion },
  });
}

/** Converts the seal of a day to its contract message. */
export function sealMessage(seal: SealRow): AuditSeal {
  const { day, firstSequence, lastSequence, previousHead, head, rootHash, logIndex, rootIndex } = seal;
  return create(AuditSealSchema, {
    ...{ day, firstSequence: BigInt(firstSequence), lastSequence: BigInt(lastSequence) },
    ...{ previousHead, head },
    ...(logIndex !== null && { logIndex: BigInt(logIndex) }),
    ...(rootHash !== undefined && { rootHash }),
    ...(rootIndex !== null && { rootLogIndex: BigInt(rootIndex) }),
  });
}

async function readEntry(tx: ReadTx, sequence: number, filter: AuditFilter): Promise<AuditEntry> {
  const [entry] = await readDecisions(tx, sequence - 1, 1);
  if (entry !== undefined && entry.id === sequence && matchesAudit(entry, filter)) return entry;
  throw new DeputeError(
    ErrorReason.AUDIT_RECORD_NOT_FOUND,
    "the audit log has no such record, or deleted it after DEPUTE_AUDIT_RETENTION; depute audit list shows the records",
    { metadata: { sequence: String(sequence) } },
  );
}

async function readSeal(tx: ReadTx, sequence: number): Promise<SealRow & RootedAuditSeal> {
  const seal = await findSeal(tx, sequence);
  if (seal === undefined) {
    const { day } = await readState(tx);
    throw notSealed(day, "the record's day is not over; call again some minutes after metadata.seal_time");
  }
  if (!isRooted(seal)) throw proofUnavailable(seal.day);
  return seal;
}

async function inclusionOf({ engine, explained }: TokensContext, seal: RootedAuditSeal) {
  const subject = { case: "digest", value: engine.sha256(rootedAuditSealBytes(seal)) } as const;
  const found = await explained.log
    .getInclusionProof({ subject }, { headers: ownHeaders("") })
    .catch((error: unknown) => {
      if (ConnectError.from(error).code !== Code.NotFound) throw error;
      throw notSealed(
        seal.day,
        "the transparency log does not have the seal of the record's day yet; call again in some minutes",
      );
    });
  const { entry, hashes, head } = found;
  if (entry === undefined || head === undefined)
    throw new Error("the verifier's proof lacks its entry or head");
  const { log, treeSize, rootHash, headTime, signature } = head;
  const signed = { log, treeSize, rootHash, signature, ...(headTime !== undefined && { headTime }) };
  const { index, appendTime } = entry;
  return { index, hashes, ...signed, ...(appendTime !== undefined && { appendTime }) };
}

function notSealed(day: string, message: string): DeputeError {
  const sealTime = formatTime((parseTime(`${day}T00:00:00Z`) ?? 0) + DAY_MS);
  return new DeputeError(ErrorReason.AUDIT_DAY_NOT_SEALED, message, {
    metadata: { day, seal_time: sealTime },
  });
}

function proofUnavailable(day: string): DeputeError {
  return new DeputeError(
    ErrorReason.AUDIT_PROOF_UNAVAILABLE,
    "the seal of the record's day has no Merkle root; check the whole day with depute audit verify",
    { metadata: { day } },
  );
}
