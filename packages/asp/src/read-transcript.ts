import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { type SessionState, SessionStateSchema } from "@depute/contracts/asp/v0/session_pb";
import { type Transcript, TranscriptSchema } from "@depute/contracts/asp/v0/transcript_pb";
import { ExportTranscriptResponseSchema } from "@depute/contracts/depute/tasks/v1/session_service_pb";
import { decodeValid, parseJson } from "@depute/wire";
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
  const parsed = parseJson(bytes, { maxBytes: MAX_TRANSCRIPT_BYTES, maxDepth: MAX_DEPTH });
  if (!parsed.ok) return { ok: false, detail: parsed.error.message };
  const answered = ofAnswer(parsed.value);
  if (typeof answered === "string") return { ok: false, detail: answered };
  if (answered !== undefined) return { ok: true, transcript: answered };
  const decoded = decodeValid(TranscriptSchema, parsed.value);
  if (decoded.ok) return { ok: true, transcript: decoded.message };
  const [first] = decoded.errors;
  return { ok: false, detail: `${first?.path ?? ""}: ${first?.message ?? "is no transcript"}` };
}

/** undefined for what is no answer of ExportTranscript; a text for what is wrong with one. */
function ofAnswer(value: JsonValue): Transcript | string | undefined {
  const isAnswer =
    typeof value === "object" &&
    value !== null &&
    !Array.isArray(value) &&
    Object.hasOwn(value, "transcript");
  if (!isAnswer) return undefined;
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
