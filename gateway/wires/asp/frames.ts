import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { stateName } from "@depute/asp";
import { type Envelope, EnvelopeSchema } from "@depute/contracts/asp/v0/envelope_pb";
import { type Session, SessionSchema } from "@depute/contracts/asp/v0/session_pb";
import { type TranscriptEntry, TranscriptEntrySchema } from "@depute/contracts/asp/v0/transcript_pb";
import type { AppendMessageResponse } from "@depute/contracts/depute/tasks/v1/session_service_pb";
import { invalid } from "@depute/core";
import { decodeValid, encode, parseJson, refusalOf } from "@depute/wire";
import type { AspError } from "./errors.ts";

/** Maximum size of a client's frame in bytes. The longest message as JSON fits into it. */
export const MAX_FRAME_BYTES = 1_048_576;
/** Maximum length of one credential in characters. */
const MAX_CREDENTIAL = 16_384;

/**
 * A frame that a client sends. (The names are from ASP transports "WebSocket". ASP publishes no members, so Depute
 * chose them.)
 */
export type ClientFrame =
  | {
      readonly type: "auth";
      /** The values for the headers Authorization and DPoP. */
      readonly authorization?: string;
      readonly dpop?: string;
      /** The sequence of the last message that the client has; 0 if it has none. */
      readonly sinceSequence: number;
    }
  | { readonly type: "send"; readonly envelope: Envelope }
  | { readonly type: "pong" };

/**
 * Reads a frame of the client.
 *
 * @throws DeputeError INVALID_REQUEST for a frame that is malformed or unknown, MALFORMED_JSON, LIMIT_EXCEEDED
 */
export function readFrame(text: Uint8Array): ClientFrame {
  const parsed = parseJson(text, { maxBytes: MAX_FRAME_BYTES });
  if (!parsed.ok) throw refusalOf(parsed.error);
  const frame = parsed.value;
  if (typeof frame !== "object" || frame === null || Array.isArray(frame)) {
    throw invalid("frame", "must be an object");
  }
  switch (frame.type) {
    case "auth":
      return {
        type: "auth",
        ...credential(frame, "authorization"),
        ...credential(frame, "dpop"),
        sinceSequence: place(frame.sinceSequence),
      };
    case "send": {
      const decoded = decodeValid(EnvelopeSchema, frame.message);
      if (!decoded.ok) throw refusalOf(...decoded.errors);
      return { type: "send", envelope: decoded.message };
    }
    case "pong":
      return { type: "pong" };
    default:
      throw invalid("type", "must be one of auth, send, pong");
  }
}

function credential<Name extends "authorization" | "dpop">(frame: JsonObject, name: Name) {
  const value = frame[name];
  if (value === undefined || value === null) return {};
  if (typeof value !== "string" || value.length > MAX_CREDENTIAL || !/^[\x20-\x7e]+$/.test(value)) {
    throw invalid(name, `must be printable text of at most ${MAX_CREDENTIAL} characters`);
  }
  return { [name]: value } as Partial<Record<Name, string>>;
}

function place(value: JsonValue | undefined): number {
  if (value === undefined || value === null) return 0;
  if (typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= 10_000) return value;
  throw invalid("sinceSequence", "must be a whole number up to 10000");
}

/** Creates the frames that the server sends. */
export const frames = {
  authOk: (session: Session): JsonObject => ({
    type: "auth_ok",
    session: encode(SessionSchema, session),
  }),
  message: (entry: TranscriptEntry): JsonObject => ({
    type: "message",
    ...(encode(TranscriptEntrySchema, entry) as JsonObject),
  }),
  state: (state: Session["state"]): JsonObject => ({ type: "session_state", state: stateName(state) }),
  ack: (messageId: string, { sequence, state, lastHash }: AppendMessageResponse): JsonObject => ({
    type: "ack",
    messageId,
    ordinal: Number(sequence),
    state: stateName(state),
    lastHash,
  }),
  trust: (agentId: string, trustScore: number, trustLevel: number): JsonObject => ({
    type: "trust_update",
    agentId,
    trustScore,
    trustLevel,
  }),
  heartbeat: (timestamp: string): JsonObject => ({ type: "heartbeat", timestamp }),
  error: ({ body }: AspError, messageId?: string): JsonObject => ({
    type: "error",
    ...(messageId === undefined ? {} : { messageId }),
    ...body,
  }),
};
