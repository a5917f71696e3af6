import {
  type LogEntry,
  LogEntryKind,
  type LogHead,
} from "@depute/contracts/depute/verifier/v1/log_service_pb";
import { encodeBase64Url, fromTimestamp } from "@depute/core";

/**
 * The log's documents. Bytes are base64url without padding, times milliseconds since the Unix epoch: a head without its
 * signature is the very object whose canonical JSON (RFC 8785) is signed after `delegateos-log-head-v1` and a zero byte,
 * and an entry's `digest`, `kind` and `time` are the leaf.
 */

const KINDS: Partial<Record<LogEntryKind, string>> = {
  [LogEntryKind.ATTESTATION]: "attestation",
  [LogEntryKind.VERIFICATION_RESULT]: "verification_result",
  [LogEntryKind.REVOCATION]: "revocation",
  [LogEntryKind.SESSION_HEAD]: "session_head",
};

export function headDocument(head: LogHead | undefined) {
  if (head?.headTime === undefined) throw new Error("the log told no head");
  return {
    log: head.log,
    rootHash: encodeBase64Url(head.rootHash),
    time: fromTimestamp(head.headTime),
    treeSize: Number(head.treeSize),
    signature: encodeBase64Url(head.signature),
  };
}

export function entryDocument({ index, kind, digest, appendTime, leaf }: LogEntry) {
  return {
    index: Number(index),
    kind: KINDS[kind] ?? "",
    digest: encodeBase64Url(digest),
    time: appendTime === undefined ? 0 : fromTimestamp(appendTime),
    leaf: encodeBase64Url(leaf),
  };
}

export function hashDocument(hash: Uint8Array): string {
  return encodeBase64Url(hash);
}
