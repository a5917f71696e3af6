import { canonicalBytes, encodeBase64Url } from "@depute/core";

/** The format name of an audit seal, the transparency-log document for one day of the audit log. */
export const AUDIT_SEAL_FORMAT = "depute-audit-seal/1";

/** The head of an audit log's hash chain before its first record: 32 zero bytes. */
export const FIRST_AUDIT_HEAD: Uint8Array = new Uint8Array(32);

/** The statement of a platform about one day of its audit log. It never changes. */
export interface AuditSeal {
  /** The day in UTC, e.g. `2026-01-31`. */
  readonly day: string;
  /** The sequences of the day's first and last record. */
  readonly firstSequence: number;
  readonly lastSequence: number;
  /** The head of the hash chain before the day's first record, 32 bytes. */
  readonly previousHead: Uint8Array;
  /** The head of the hash chain after the day's last record, 32 bytes. */
  readonly head: Uint8Array;
}

/**
 * Returns the head of the hash chain after a record: SHA-256 of the earlier head and the SHA-256 of the record's line.
 *
 * @param line the record as canonical JSON, in UTF-8
 */
export function nextAuditHead(
  sha256: (data: Uint8Array) => Uint8Array,
  head: Uint8Array,
  line: Uint8Array,
): Uint8Array {
  const input = new Uint8Array(64);
  input.set(head);
  input.set(sha256(line), 32);
  return sha256(input);
}

/** Returns the canonical JSON of a seal. Its digest is a leaf of the transparency log. */
export function auditSealBytes({
  day,
  firstSequence,
  lastSequence,
  previousHead,
  head,
}: AuditSeal): Uint8Array {
  return canonicalBytes({
    ...{ format: AUDIT_SEAL_FORMAT, day, firstSequence, lastSequence },
    ...{ previousHead: encodeBase64Url(previousHead), head: encodeBase64Url(head) },
  });
}
