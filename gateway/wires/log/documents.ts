import { hash } from "node:crypto";
import {
  type LogEntry,
  LogEntryKind,
  type LogHead,
} from "@depute/contracts/depute/verifier/v1/log_service_pb";
import { encodeBase64Url, fromTimestamp } from "@depute/core";
import type { Validated } from "../../src/validated.ts";

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

/** What an address of the log answers. */
export interface Answer {
  readonly body: unknown;
  /** Whether the same request always has this answer. */
  readonly immutable: boolean;
}

/** A proof never changes once it was given. The present state does, so caches ask again. */
const FOREVER = "public, max-age=31536000, immutable";
const ASK_AGAIN = "no-cache";

/** An answer as a document with its validators. (RFC 9110 section 8.8) */
export function validatedDocument({ body, immutable }: Answer): Validated {
  const bytes = Buffer.from(JSON.stringify(body));
  return {
    bytes,
    contentType: "application/json",
    cacheControl: immutable ? FOREVER : ASK_AGAIN,
    etag: `"${hash("sha256", bytes, "base64url")}"`,
  };
}
