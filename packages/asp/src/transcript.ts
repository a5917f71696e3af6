import { create } from "@bufbuild/protobuf";
import type { Envelope } from "@depute/contracts/asp/v0/envelope_pb";
import type { SessionState } from "@depute/contracts/asp/v0/session_pb";
import { type Transcript, TranscriptSchema } from "@depute/contracts/asp/v0/transcript_pb";
import { CanonicalError, formatTime, parseTime } from "@depute/core";
import type { CryptoEngine } from "@depute/dct";
import { WireEncodeError } from "@depute/wire";
import { append } from "./append.ts";
import type { AgentFacts } from "./context.ts";
import type { RefusalCode } from "./refusal.ts";
import { idleSession, type Session } from "./session.ts";
import { advance } from "./time.ts";
import {
  entryHash,
  type PlatformKeys,
  type SealVerdict,
  sessionHead,
  verifySeal,
} from "./transcript-seal.ts";

export const TRANSCRIPT_FORMAT = "asp-transcript/0.1";

/** A message with the time at which it was appended, epoch milliseconds. */
export interface Entry {
  readonly envelope: Envelope;
  readonly receiveMs: number;
}

/** The transcript of a session, at a time, without a seal. */
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
  | "wrong_outcome"
  /** The seal is not this transcript's: something was changed after the export. */
  | "wrong_seal"
  /** The seal, or the log that it rests on, is by a key that is not the platform's. */
  | "unknown_seal_key";

/** What a seal proves. unchecked: there is one, but the verifier knows no keys of the platform. */
export type SealStatus = "unsealed" | "unchecked" | "sealed";

export type TranscriptVerdict =
  | {
      readonly ok: true;
      /** The session at the time of the export. */
      readonly session: Session;
      /** The state after each message. */
      readonly states: readonly SessionState[];
      /** Only a sealed transcript is known to be whole: messages could be missing at the end of another. */
      readonly seal: SealStatus;
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
  /** The platform's keys as the verifier knows them. Without them a seal is not checked. */
  readonly platform?: PlatformKeys;
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
// biome-ignore lint/complexity/noExcessiveCognitiveComplexity: the checks of a transcript in the order of the text
export function* verifySteps(
  transcript: Transcript,
  { engine, keyOf, platform, strictIds }: VerifyOptions,
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
  const hashes: string[] = [];
  let beforeMs = firstMs;
  for (const [index, entry] of transcript.messages.entries()) {
    const { envelope, ordinal, receivedAt } = entry;
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
    if (transcript.seal !== undefined && platform !== undefined) hashes.push(entryHash(engine, entry));
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
  const { seal } = transcript;
  if (seal === undefined) return { ok: true, session, states, seal: "unsealed" };
  if (platform === undefined) return { ok: true, session, states, seal: "unchecked" };
  const sealed = sealVerdict(() =>
    verifySeal(engine, transcript, seal, sessionHead(engine, transcript, hashes), platform),
  );
  if (!sealed.ok) return fault(sealed.code, sealed.detail);
  return { ok: true, session, states, seal: "sealed" };
}

/** Participants that have no JSON form were never sealed. */
function sealVerdict(verify: () => SealVerdict): SealVerdict {
  try {
    return verify();
  } catch (thrown) {
    if (!(thrown instanceof CanonicalError || thrown instanceof WireEncodeError)) throw thrown;
    return { ok: false, code: "wrong_seal", detail: "the transcript has no JSON form" };
  }
}
