import { canonicalBytes } from "@depute/core";

/** The format of the document that a session's head is logged as. */
export const SESSION_HEAD_FORMAT = "asp-session-head/0.1";

/** What a platform states of an ASP session at its newest message (asp.v0.TranscriptSeal). The same head never changes. */
export interface SessionHead {
  readonly sessionId: string;
  /** How many messages the session has. */
  readonly length: number;
  /** The hash of the newest message, `sha256:` and hexadecimal. */
  readonly lastHash: string;
  /** The hash of the whole record, in the same form. */
  readonly recordHash: string;
}

/** The head as the document whose digest is a leaf of the log. */
export function sessionHeadDocument({ sessionId, length, lastHash, recordHash }: SessionHead) {
  return { format: SESSION_HEAD_FORMAT, lastHash, length, recordHash, sessionId };
}

/** The canonical JSON of that document. */
export function sessionHeadBytes(head: SessionHead): Uint8Array {
  return canonicalBytes(sessionHeadDocument(head));
}
