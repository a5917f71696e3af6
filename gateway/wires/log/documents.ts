import { hash } from "node:crypto";
import {
  type LogEntry,
  LogEntryKind,
  type LogHead,
} from "@depute/contracts/depute/verifier/v1/log_service_pb";
import { encodeBase64Url, fromTimestamp } from "@depute/core";
import type { Validated } from "../../edge/validated.ts";

/**
 * This module writes the JSON documents of the transparency log. In these documents, bytes are base64url without
 * padding, and times are milliseconds since the Unix epoch. A head's signature covers `delegateos-log-head-v1`, a zero
 * byte and the canonical JSON (RFC 8785) of the head without its signature. An entry's `digest`, `kind` and `time` form
 * the leaf.
 */

const KINDS: Partial<Record<LogEntryKind, string>> = {
  [LogEntryKind.ATTESTATION]: "attestation",
  [LogEntryKind.VERIFICATION_RESULT]: "verification_result",
  [LogEntryKind.REVOCATION]: "revocation",
  [LogEntryKind.SESSION_HEAD]: "session_head",
  [LogEntryKind.AUDIT_SEAL]: "audit_seal",
};

export function headDocument(head: LogHead | undefined) {
  if (head?.headTime === undefined) throw new Error("the log answered without a head");
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

/** The answer at an address of the log. */
export interface Answer {
  readonly body: unknown;
  /** Whether the answer to the same request is always the same. */
  readonly immutable: boolean;
}

/**
 * Cache headers. A proof never changes, so caches may keep it without revalidation. The current state changes, so
 * caches must revalidate it before each use.
 */
const FOREVER = "public, max-age=31536000, immutable";
const ASK_AGAIN = "no-cache";

/** Returns an answer as a document with validators. (RFC 9110 section 8.8) */
export function validatedDocument({ body, immutable }: Answer): Validated {
  const bytes = Buffer.from(JSON.stringify(body));
  return {
    bytes,
    contentType: "application/json",
    cacheControl: immutable ? FOREVER : ASK_AGAIN,
    etag: `"${hash("sha256", bytes, "base64url")}"`,
  };
}
