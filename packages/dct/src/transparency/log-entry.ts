import { canonicalBytes, encodeBase64Url } from "@depute/core";

/** What a leaf is about. */
export type LogEntryKind = "attestation" | "verification_result" | "revocation" | "session_head";

/**
 * One leaf. It holds the digest of a document and not its id: whoever knows the id of an attestation may read it, and
 * everybody may read the log.
 */
export interface LogEntry {
  kind: LogEntryKind;
  /** SHA-256 of the canonical JSON of the document. */
  digest: Uint8Array;
  /** When it was appended, in milliseconds since 1970. */
  time: number;
}

/** The bytes of a leaf: canonical JSON of its members. */
export function logEntryBytes({ kind, digest, time }: LogEntry): Uint8Array {
  return canonicalBytes({ digest: encodeBase64Url(digest), kind, time });
}

/** The digest under which a document stands in the log. Throws CanonicalError for what is not JSON. */
export function documentDigest(sha256: (data: Uint8Array) => Uint8Array, document: unknown): Uint8Array {
  return sha256(canonicalBytes(document));
}
