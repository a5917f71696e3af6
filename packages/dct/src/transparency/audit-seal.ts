import { canonicalBytes, encodeBase64Url } from "@depute/core";

/** The format name of an audit seal, the transparency-log document for one day of the audit log. */
export const AUDIT_SEAL_FORMAT = "depute-audit-seal/1";

/** The format name of an audit seal with the root of the day's tree. */
export const ROOTED_AUDIT_SEAL_FORMAT = "depute-audit-seal/2";

/** The head of an audit log's hash chain before its first record: 32 zero bytes. */
export const FIRST_AUDIT_HEAD: Uint8Array = new Uint8Array(32);

/** The statement of a platform about one day of its audit log. The statement of a day never changes. */
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
  /**
   * The root of the Merkle tree over the lines of the day's records, 32 bytes. Absent for a day whose first record is of
   * a version without trees.
   */
  readonly rootHash?: Uint8Array;
}

/** The seal of a day that has a tree. */
export type RootedAuditSeal = AuditSeal & { readonly rootHash: Uint8Array };

/** Whether a seal has the root of the day's tree. */
export function isRooted(seal: AuditSeal): seal is RootedAuditSeal {
  return seal.rootHash !== undefined && seal.rootHash.length > 0;
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

/** Returns the canonical JSON of a seal without its root. Its digest is a leaf of the transparency log. */
export function auditSealBytes(seal: AuditSeal): Uint8Array {
  return canonicalBytes({ format: AUDIT_SEAL_FORMAT, ...membersOf(seal) });
}

/** Returns the canonical JSON of a seal with its root. Its digest is another leaf of the transparency log. */
export function rootedAuditSealBytes(seal: RootedAuditSeal): Uint8Array {
  const rootHash = encodeBase64Url(seal.rootHash);
  return canonicalBytes({ format: ROOTED_AUDIT_SEAL_FORMAT, ...membersOf(seal), rootHash });
}

function membersOf({ day, firstSequence, lastSequence, previousHead, head }: AuditSeal) {
  return {
    ...{ day, firstSequence, lastSequence },
    ...{ previousHead: encodeBase64Url(previousHead), head: encodeBase64Url(head) },
  };
}
