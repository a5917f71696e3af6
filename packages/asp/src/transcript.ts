import { create } from "@bufbuild/protobuf";
import type { Envelope } from "@depute/contracts/asp/v0/envelope_pb";
import type { SessionState } from "@depute/contracts/asp/v0/session_pb";
import { type Transcript, TranscriptSchema } from "@depute/contracts/asp/v0/transcript_pb";
import { formatTime, parseTime } from "@depute/core";
import type { CryptoEngine } from "@depute/dct";
import { append } from "./append.ts";
import type { AgentFacts } from "./context.ts";
import type { RefusalCode } from "./refusal.ts";
import { idleSession, type Session } from "./session.ts";
import { advance } from "./time.ts";

export const TRANSCRIPT_FORMAT = "asp-transcript/0.1";

/** A message with the time at which it was appended, epoch milliseconds. */
export interface Entry {
  readonly envelope: Envelope;
  readonly receiveMs: number;
}

/** The transcript of a session, at a time. */
export function exportTranscript(session: Session, entries: readonly Entry[], nowMs: number): Transcript {
  const current = advance(session, nowMs);
  return create(TranscriptSchema, {
    format: TRANSCRIPT_FORMAT,
    sessionId: session.sessionId,
    exportedAt: formatTime(nowMs),
    state: current.state,
    lastHash: current.lastHash,
    participants: current.parties.map(
      ({ agentId, orgId, role, trustScore, key: signingPublicKey, proofThumbprint, conformance }) => ({
        agentId,
        role,
        signingPublicKey,
        ...(orgId === undefined ? {} : { orgId }),
        ...(trustScore === undefined ? {} : { trustScore }),
        ...(proofThumbprint === undefined ? {} : { dpopThumbprint: proofThumbprint }),
        ...(conformance === undefined ? {} : { conformanceLevel: conformance }),
      }),
    ),
    messages: entries.map(({ envelope, receiveMs }, index) => ({
      ordinal: index + 1,
      receivedAt: formatTime(receiveMs),
      envelope,
    })),
  });
}

/** What is wrong with a transcript beside its messages. */
export type TranscriptFault =
  /** A participant, an ordinal or a time is not as it has to be. */
  | "malformed_transcript"
  /** A key is not the one that the verifier knows. */
  | "untrusted_key"
  /** The messages lead to another state, or another newest message, than the transcript says. */
  | "wrong_outcome";

export type TranscriptVerdict =
  | {
      readonly ok: true;
      /** The session at the time of the export. */
      readonly session: Session;
      /** The state after each message. */
      readonly states: readonly SessionState[];
    }
  | {
      readonly ok: false;
      readonly code: RefusalCode | TranscriptFault;
      readonly detail: string;
      /** The message at fault, from 1; 0: none. */
      readonly ordinal: number;
      /** The session up to the fault. */
      readonly session: Session;
    };

export interface VerifyOptions {
  readonly engine: CryptoEngine;
  /**
   * The key of an agent as the verifier knows it, base64url. Without it a transcript is only shown to agree with itself: that
   * the keys in it are the agents' own is to be known from elsewhere.
   */
  readonly keyOf?: (agentId: string) => string | undefined;
  readonly strictIds?: boolean;
}

/**
 * Applies the rules of the protocol to a transcript from the first message on: every hash, signature, sequence number,
 * right and transition. It asks nobody and keeps nothing, and throws nothing for whatever transcript of the contract's
 * form.
 */
export function verifyTranscript(transcript: Transcript, options: VerifyOptions): TranscriptVerdict {
  const steps = verifySteps(transcript, options);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** The same in steps, one a message, for who has other things to do meanwhile. */
export function* verifySteps(
  transcript: Transcript,
  { engine, keyOf, strictIds }: VerifyOptions,
): Generator<void, TranscriptVerdict, void> {
  const firstMs = parseTime(transcript.messages[0]?.receivedAt ?? transcript.exportedAt) ?? 0;
  let session = idleSession(transcript.sessionId, firstMs);
  const fault = (code: RefusalCode | TranscriptFault, detail: string, ordinal = 0): TranscriptVerdict => ({
    ok: false,
    code,
    detail,
    ordinal,
    session,
  });
  const agents = new Map<string, AgentFacts>();
  for (const participant of transcript.participants) {
    const { agentId, signingPublicKey: key, orgId, trustScore, dpopThumbprint } = participant;
    const { conformanceLevel: conformance } = participant;
    if (keyOf !== undefined && keyOf(agentId) !== key) {
      return fault("untrusted_key", `the key of ${agentId} is not the one that is known`);
    }
    agents.set(agentId, {
      key,
      ...(orgId === undefined ? {} : { orgId }),
      ...(trustScore === undefined ? {} : { trustScore }),
      ...(dpopThumbprint === undefined ? {} : { proofThumbprint: dpopThumbprint }),
      ...(conformance === undefined ? {} : { conformance }),
    });
  }
  const seen = new Set<string>();
  const states: SessionState[] = [];
  let beforeMs = firstMs;
  for (const [index, { envelope, ordinal, receivedAt }] of transcript.messages.entries()) {
    const nowMs = parseTime(receivedAt);
    if (envelope === undefined || ordinal !== index + 1 || nowMs === undefined || nowMs < beforeMs) {
      return fault("malformed_transcript", "ordinals and times count up from message to message", index + 1);
    }
    beforeMs = nowMs;
    const result = append(session, envelope, {
      nowMs,
      engine,
      agent: (agentId) => agents.get(agentId),
      hasMessage: (messageId) => seen.has(messageId),
      ...(strictIds === undefined ? {} : { strictIds }),
    });
    session = result.session;
    if (!result.ok) return fault(result.refusal.code, result.refusal.detail, ordinal);
    seen.add(envelope.messageId);
    states.push(session.state);
    yield;
  }
  const exportMs = parseTime(transcript.exportedAt);
  if (exportMs === undefined || exportMs < beforeMs) {
    return fault("malformed_transcript", "it was exported before its last message");
  }
  session = advance(session, exportMs);
  if (session.parties.length !== agents.size) {
    return fault("malformed_transcript", "it lists participants that no message brought in");
  }
  if (session.lastHash !== transcript.lastHash || session.state !== transcript.state) {
    return fault("wrong_outcome", "the messages lead elsewhere than the transcript says");
  }
  return { ok: true, session, states };
}
