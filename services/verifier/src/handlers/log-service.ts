import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  type AppendSessionHeadRequest,
  type GetConsistencyProofRequest,
  type GetInclusionProofRequest,
  type GetLogHeadRequest,
  type ListLogEntriesRequest,
  LogEntryKind,
  type LogService,
} from "@depute/contracts/depute/verifier/v1/log_service_pb";
import {
  DeputeError,
  decodePageToken,
  ErrorReason,
  encodeBase64Url,
  encodePageToken,
  invalid,
  pageSize,
  toTimestamp,
} from "@depute/core";
import {
  auditSealBytes,
  isRooted,
  logEntryBytes,
  rootedAuditSealBytes,
  sessionHeadBytes,
} from "@depute/dct/transparency";
import type { ReadTx, WriteTx } from "@depute/store";
import { attestationNotFound } from "../attestations.ts";
import { getLogIndex } from "../store/attestations.ts";
import { findLogRow, getLogRow, type LogRow, listLogRows, readLogState } from "../store/log.ts";
import type { SignedHead } from "../transparency-log.ts";
import type { Verifier } from "../verifier.ts";

const KINDS: Record<LogRow["kind"], LogEntryKind> = {
  attestation: LogEntryKind.ATTESTATION,
  verification_result: LogEntryKind.VERIFICATION_RESULT,
  revocation: LogEntryKind.REVOCATION,
  session_head: LogEntryKind.SESSION_HEAD,
  audit_seal: LogEntryKind.AUDIT_SEAL,
};

/** Handles the calls of LogService, which read the transparency log and append to it. */
export function logService({ store, log, authority, engine }: Verifier): ServiceImpl<typeof LogService> {
  return {
    async getLogHead(_request: GetLogHeadRequest, context: HandlerContext) {
      await authority.identify(context);
      return { head: headMessage(await store.read((tx) => log.head(tx))) };
    },

    async getInclusionProof(request: GetInclusionProofRequest, context: HandlerContext) {
      await authority.identify(context);
      return store.read(async (tx) => {
        const row = await rowOf(tx, request.subject);
        const { size, isCurrent } = await sizeOf(tx, request.treeSize);
        if (row.index >= size) throw entryNotFound({ index: String(row.index) });
        const hashes = await log.inclusion(tx, row.index, size);
        const proof = { entry: entryMessage(row), treeSize: BigInt(size), hashes };
        return isCurrent ? { ...proof, head: headMessage(await log.head(tx)) } : proof;
      });
    },

    async getConsistencyProof(request: GetConsistencyProofRequest, context: HandlerContext) {
      await authority.identify(context);
      return store.read(async (tx) => {
        const { size, isCurrent } = await sizeOf(tx, request.secondSize);
        const first = Number(request.firstSize);
        if (first > size) throw sizeUnknown((await readLogState(tx)).size);
        const proof = { secondSize: BigInt(size), hashes: await log.consistency(tx, first, size) };
        return isCurrent ? { ...proof, head: headMessage(await log.head(tx)) } : proof;
      });
    },

    async listLogEntries(request: ListLogEntriesRequest, context: HandlerContext) {
      await authority.identify(context);
      const filters = { list: "log-entries", firstIndex: String(request.firstIndex) };
      const [next = Number(request.firstIndex)] = decodePageToken(request.pageToken, filters) ?? [];
      return store.read(async (tx) => {
        const rows = await listLogRows(tx, Number(next), pageSize(request.pageSize));
        const { size } = await readLogState(tx);
        const last = rows.at(-1)?.index;
        const isLastPage = last === undefined || last + 1 >= size;
        return {
          entries: rows.map(entryMessage),
          treeSize: BigInt(size),
          nextPageToken: isLastPage ? "" : encodePageToken([last + 1], filters),
        };
      });
    },

    async appendSessionHead({ sessionId, length, lastHash, recordHash }: AppendSessionHeadRequest, context) {
      const identity = await authority.identify(context);
      if (!identity.local) {
        throw new DeputeError(
          ErrorReason.CALLER_NOT_ALLOWED,
          "only the platform's services append sessions to the log",
        );
      }
      const canonical = sessionHeadBytes({ sessionId, length, lastHash, recordHash });
      const digest = engine.sha256(canonical);
      const existingRow = await store.read((tx) => findLogRow(tx, digest, "session_head"));
      if (existingRow === undefined) {
        await store.write((tx) => log.append(tx, "session_head", Buffer.from(canonical).toString()));
      }
      return store.read(async (tx) => {
        const row = existingRow ?? (await rowOf(tx, { case: "digest", value: digest }));
        const signed = await log.head(tx);
        const hashes = await log.inclusion(tx, row.index, signed.head.treeSize);
        return { entry: entryMessage(row), hashes, head: headMessage(signed) };
      });
    },

    async appendAuditSeal({ day, firstSequence, lastSequence, previousHead, head, rootHash }, context) {
      const identity = await authority.identify(context);
      if (!identity.local) {
        throw new DeputeError(
          ErrorReason.CALLER_NOT_ALLOWED,
          "only the platform's services append days of the audit log to the log",
        );
      }
      const sequences = { firstSequence: Number(firstSequence), lastSequence: Number(lastSequence) };
      const seal = { day, ...sequences, previousHead, head, rootHash };
      const append = async (tx: WriteTx, document: Uint8Array) =>
        BigInt(await log.append(tx, "audit_seal", Buffer.from(document).toString()));
      return store.write(async (tx) => {
        const index = await append(tx, auditSealBytes(seal));
        return isRooted(seal)
          ? { index, rootIndex: await append(tx, rootedAuditSealBytes(seal)) }
          : { index };
      });
    },
  };
}

async function rowOf(tx: ReadTx, subject: GetInclusionProofRequest["subject"]): Promise<LogRow> {
  switch (subject.case) {
    case "digest":
      return requireRow(await findLogRow(tx, subject.value), { digest: encodeBase64Url(subject.value) });
    case "index":
      return requireRow(await getLogRow(tx, Number(subject.value)), { index: String(subject.value) });
    case "attestationId": {
      const index = await getLogIndex(tx, subject.value);
      if (index === undefined) throw attestationNotFound(subject.value);
      return requireRow(index === null ? undefined : await getLogRow(tx, index), {
        attestation: subject.value,
      });
    }
    default:
      throw invalid("subject", "a digest, an attestation or an index is required");
  }
}

/**
 * Returns the tree size that a request names. A requested size of 0 means the current size, and only then is
 * `isCurrent` true.
 *
 * @throws DeputeError LOG_SIZE_UNKNOWN
 */
async function sizeOf(tx: ReadTx, requestedSize: bigint): Promise<{ size: number; isCurrent: boolean }> {
  const { size } = await readLogState(tx);
  if (requestedSize === 0n) return { size, isCurrent: true };
  if (requestedSize > BigInt(size)) throw sizeUnknown(size);
  return { size: Number(requestedSize), isCurrent: false };
}

function requireRow(row: LogRow | undefined, metadata: Record<string, string>): LogRow {
  if (row === undefined) throw entryNotFound(metadata);
  return row;
}

function entryNotFound(metadata: Record<string, string>): DeputeError {
  return new DeputeError(ErrorReason.LOG_ENTRY_NOT_FOUND, "the log has no such leaf; check the subject", {
    metadata,
  });
}

function sizeUnknown(size: number): DeputeError {
  return new DeputeError(
    ErrorReason.LOG_SIZE_UNKNOWN,
    "the log never had this tree size; metadata.tree_size has the current size",
    {
      metadata: { tree_size: String(size) },
    },
  );
}

function entryMessage(row: LogRow) {
  const { index, kind, digest, time } = row;
  return {
    index: BigInt(index),
    kind: KINDS[kind],
    digest,
    appendTime: toTimestamp(time),
    leaf: logEntryBytes(row),
  };
}

function headMessage({ head, signature }: SignedHead) {
  const { log, treeSize, rootHash, time } = head;
  return { log, treeSize: BigInt(treeSize), rootHash, headTime: toTimestamp(time), signature };
}
