import { canonicalBytes, encodeBase64Url } from "@depute/core";

/** The kind of the document whose digest a leaf contains. */
export type LogEntryKind =
  | "attestation"
  | "verification_result"
  | "revocation"
  | "session_head"
  | "audit_seal";

/**
 * One leaf of the transparency log. A leaf contains the digest of a document, and not the document's id. The log is
 * public, and any reader could fetch an attestation by its id.
 */
export interface LogEntry {
  kind: LogEntryKind;
  /** SHA-256 of the canonical JSON of the document. */
  digest: Uint8Array;
  /** The time at which the leaf was appended, in milliseconds since 1970. */
  time: number;
}

/** Returns the bytes of a leaf: canonical JSON of its members. */
export function logEntryBytes({ kind, digest, time }: LogEntry): Uint8Array {
  return canonicalBytes({ digest: encodeBase64Url(digest), kind, time });
}

/** Returns the digest of a document in the log. Throws CanonicalError for a value that is not JSON. */
export function documentDigest(sha256: (data: Uint8Array) => Uint8Array, document: unknown): Uint8Array {
  return sha256(canonicalBytes(document));
}
