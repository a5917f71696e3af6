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

/** Levels of nesting of a transcript: those of a message, with room for its place. */
const MAX_DEPTH = 128;

/** The longest transcript that is read, in bytes; one of full-length messages is longer than any program should be handed. */
export const MAX_TRANSCRIPT_BYTES = 256 * 1_048_576;

export type ReadTranscript =
  | { readonly ok: true; readonly transcript: Transcript }
  | { readonly ok: false; readonly detail: string };

/**
 * A transcript from a file: the document that the ASP wire serves, or the answer of ExportTranscript in JSON.
 *
 * @param bytes JSON in UTF-8
 */
export function readTranscript(bytes: Uint8Array): ReadTranscript {
  const parsed = parseJson(bytes, {
    maxBytes: MAX_TRANSCRIPT_BYTES,
    maxDepth: MAX_DEPTH,
    // A whole session has more values than a request may; its bytes are bounded.
    maxValues: Number.POSITIVE_INFINITY,
  });
  if (!parsed.ok) return { ok: false, detail: parsed.error.message };
  const answered = ofAnswer(parsed.value);
  if (typeof answered === "string") return { ok: false, detail: answered };
  if (answered !== undefined) return { ok: true, transcript: answered };
  const decoded = decodeValid(TranscriptSchema, parsed.value);
  if (!decoded.ok) return { ok: false, detail: firstOf(decoded.errors, "is no transcript") };
  const transcript = decoded.message;
  // A seal covers what was written, not only what was understood of it.
  if (transcript.seal !== undefined && !isSame(parsed.value, encode(TranscriptSchema, transcript))) {
    return { ok: false, detail: "a sealed transcript is not spelled as the platform writes it" };
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
 * A platform's keys from a file: the document that the ASP wire serves, or the answer of GetTranscriptKeys in JSON.
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
  return { ok: false, detail: firstOf(decoded.errors, "are no keys") };
}

function hasMember(value: JsonValue, name: string): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value) && Object.hasOwn(value, name);
}

/** undefined for what is no answer of ExportTranscript; a text for what is wrong with one. */
function ofAnswer(value: JsonValue): Transcript | string | undefined {
  if (!hasMember(value, "transcript")) return undefined;
  try {
    const { transcript } = fromJson(ExportTranscriptResponseSchema, value);
    if (transcript === undefined || transcript.messages.length > MAX_MESSAGES) return "is no transcript";
    return transcript;
  } catch (error) {
    return (error as Error).message;
  }
}

/** A state by its word: `CONVERSING`. */
export function stateName(state: SessionState): string {
  return SessionStateSchema.value[state]?.localName ?? "";
}
