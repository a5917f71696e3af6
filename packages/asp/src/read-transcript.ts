import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { type SessionState, SessionStateSchema } from "@depute/contracts/asp/v0/session_pb";
import {
  type Transcript,
  type TranscriptKeys,
  TranscriptKeysSchema,
  TranscriptSchema,
} from "@depute/contracts/asp/v0/transcript_pb";
import {
  ExportTranscriptResponseSchema,
  GetTranscriptKeysResponseSchema,
} from "@depute/contracts/depute/tasks/v1/session_service_pb";
import { canonicalBytes } from "@depute/core";
import { decodeValid, encode, parseJson } from "@depute/wire";
import { MAX_MESSAGES } from "./limits.ts";

/** Maximum nesting depth of a transcript's JSON: the depth of a message, plus the levels around the message. */
const MAX_DEPTH = 128;

/**
 * Maximum size of an accepted transcript in bytes. The limit is several times MAX_SESSION_BYTES, because a file may
 * have white space and escapes that the canonical form lacks.
 */
export const MAX_TRANSCRIPT_BYTES = 256 * 1_048_576;

export type ReadTranscript =
  | { readonly ok: true; readonly transcript: Transcript }
  | { readonly ok: false; readonly detail: string };

/**
 * Reads a transcript from a file. The file contains the document of the ASP wire or the JSON answer of
 * ExportTranscript.
 *
 * @param bytes JSON in UTF-8
 */
export function readTranscript(bytes: Uint8Array): ReadTranscript {
  const parsed = parseJson(bytes, {
    maxBytes: MAX_TRANSCRIPT_BYTES,
    maxDepth: MAX_DEPTH,
    // A session has more values than a request may have, so only the size in bytes is limited.
    maxValues: Number.POSITIVE_INFINITY,
  });
  if (!parsed.ok) return { ok: false, detail: parsed.error.message };
  const answered = ofAnswer(parsed.value);
  if (typeof answered === "string") return { ok: false, detail: answered };
  if (answered !== undefined) return { ok: true, transcript: answered };
  const decoded = decodeValid(TranscriptSchema, parsed.value);
  if (!decoded.ok) return { ok: false, detail: firstOf(decoded.errors, "is not a transcript") };
  const transcript = decoded.message;
  // A seal covers the whole document. So a transcript is invalid if decoding drops a member.
  if (transcript.seal !== undefined && !isSame(parsed.value, encode(TranscriptSchema, transcript))) {
    return { ok: false, detail: "the file was rewritten after the seal: export the transcript again" };
  }
  return { ok: true, transcript };
}

function isSame(one: JsonValue, other: JsonValue): boolean {
  const [a, b] = [canonicalBytes(one), canonicalBytes(other)];
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

function firstOf([first]: readonly { path: string; message: string }[], otherwise: string): string {
  return first === undefined ? otherwise : `${first.path}: ${first.message}`;
}

export type ReadTranscriptKeys =
  | { readonly ok: true; readonly keys: TranscriptKeys }
  | { readonly ok: false; readonly detail: string };

/**
 * Reads a platform's keys from a file. The file contains the document of the ASP wire or the JSON answer of
 * GetTranscriptKeys.
 *
 * @param bytes JSON in UTF-8
 */
export function readTranscriptKeys(bytes: Uint8Array): ReadTranscriptKeys {
  const parsed = parseJson(bytes);
  if (!parsed.ok) return { ok: false, detail: parsed.error.message };
  let document = parsed.value;
  if (hasMember(document, "keys")) {
    try {
      const { keys } = fromJson(GetTranscriptKeysResponseSchema, document);
      document = keys === undefined ? null : encode(TranscriptKeysSchema, keys);
    } catch (error) {
      return { ok: false, detail: (error as Error).message };
    }
  }
  const decoded = decodeValid(TranscriptKeysSchema, document);
  if (decoded.ok) return { ok: true, keys: decoded.message };
  return { ok: false, detail: firstOf(decoded.errors, "are not a platform's keys") };
}

function hasMember(value: JsonValue, name: string): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value) && Object.hasOwn(value, name);
}

/**
 * Reads an answer of ExportTranscript. Returns undefined if the value is not an answer of ExportTranscript. Returns
 * a description of the fault if the answer is malformed.
 */
function ofAnswer(value: JsonValue): Transcript | string | undefined {
  if (!hasMember(value, "transcript")) return undefined;
  try {
    const { transcript } = fromJson(ExportTranscriptResponseSchema, value);
    if (transcript === undefined || transcript.messages.length > MAX_MESSAGES) return "is not a transcript";
    return transcript;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Returns the name of a state without the enum's prefix, for example `CONVERSING`. */
export function stateName(state: SessionState): string {
  return SessionStateSchema.value[state]?.localName ?? "";
}
