import { canonicalBytes } from "@depute/core";

/** The format name of a session head, the transparency-log document for an ASP session. */
export const SESSION_HEAD_FORMAT = "asp-session-head/0.1";

/**
 * A platform's statement about an ASP session up to its newest message (asp.v0.TranscriptSeal). A head never
 * changes.
 */
export interface SessionHead {
  readonly sessionId: string;
  /** Number of messages in the ASP session. */
  readonly length: number;
  /** The hash of the newest message, `sha256:` and hexadecimal. */
  readonly lastHash: string;
  /** The hash of the record (the participants, and each message with its time), in the form of `lastHash`. */
  readonly recordHash: string;
}

/** Returns the document for a session head. The document's digest is a leaf of the transparency log. */
export function sessionHeadDocument({ sessionId, length, lastHash, recordHash }: SessionHead) {
  return { format: SESSION_HEAD_FORMAT, lastHash, length, recordHash, sessionId };
}

/** Returns the canonical JSON of a head's document. */
export function sessionHeadBytes(head: SessionHead): Uint8Array {
  return canonicalBytes(sessionHeadDocument(head));
}
