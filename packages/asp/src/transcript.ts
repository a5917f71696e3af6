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

/** A message and the time in epoch milliseconds at which it was appended. */
export interface Entry {
  readonly envelope: Envelope;
  readonly receiveMs: number;
}

/** Returns the transcript of a session at the time `nowMs`, without a seal. */
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

/** The faults of a transcript other than the refusal of a message by `append`. */
export type TranscriptFault =
  /** A participant, an ordinal or a time is invalid. */
  | "malformed_transcript"
  /** A key in the transcript differs from the key that the verifier trusts. */
  | "untrusted_key"
  /** The messages lead to a different state or latest message than the transcript states. */
  | "wrong_outcome"
  /**
   * The seal does not match: the transcript was changed after the export, or the proof of the transparency log fails.
   */
  | "wrong_seal"
  /** The key of the seal, or the key of the log head that proves the seal, is not a key of the platform. */
  | "unknown_seal_key";

/** The result of checking the seal. `unchecked`: the transcript has a seal, but the verifier has no platform keys. */
export type SealStatus = "unsealed" | "unchecked" | "sealed";

export type TranscriptVerdict =
  | {
      readonly ok: true;
      /** The session at the time of the export. */
      readonly session: Session;
      /** The state after each message. */
      readonly states: readonly SessionState[];
      /**
       * The result of checking the seal. Only a sealed transcript is certainly complete. Any other transcript may
       * lack messages at its end.
       */
      readonly seal: SealStatus;
    }
  | {
      readonly ok: false;
      readonly code: RefusalCode | TranscriptFault;
      readonly detail: string;
      /** The ordinal of the faulty message, starting at 1; 0 if the fault concerns no single message. */
      readonly ordinal: number;
      /** The session up to the fault. */
      readonly session: Session;
    };

export interface VerifyOptions {
  readonly engine: CryptoEngine;
  /**
   * Returns the trusted key of an agent, base64url. Without trusted keys, the check shows only that the transcript is
   * consistent: its keys are not proven to belong to the agents.
   */
  readonly keyOf?: (agentId: string) => string | undefined;
  /** The trusted keys of the platform. Without them a seal is not checked. */
  readonly platform?: PlatformKeys;
  readonly strictIds?: boolean;
}

/**
 * Verifies a transcript from the first message on: every hash, signature, sequence number, role and transition. The
 * check is offline, and stores no state. Never throws for a transcript that satisfies the validation rules of its
 * protobuf contract.
 */
export function verifyTranscript(transcript: Transcript, options: VerifyOptions): TranscriptVerdict {
  const steps = verifySteps(transcript, options);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** Like verifyTranscript, but yields after each message, so that other work can run between messages. */
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
      return fault("untrusted_key", `the key of ${agentId} is not its trusted key`);
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
      return fault(
        "malformed_transcript",
        "ordinals must count up from 1, and times must not decrease",
        index + 1,
      );
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
    return fault("malformed_transcript", "the time of the export must not be before the last message");
  }
  session = advance(session, exportMs);
  if (session.parties.length !== agents.size) {
    return fault("malformed_transcript", "the transcript lists participants that no message added");
  }
  if (session.lastHash !== transcript.lastHash || session.state !== transcript.state) {
    return fault("wrong_outcome", "the messages lead to another state or head than the transcript states");
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

/**
 * Returns the verdict on a seal. A seal covers the JSON form of the participants and messages. So the seal is wrong
 * if these have no JSON form.
 */
function sealVerdict(verify: () => SealVerdict): SealVerdict {
  try {
    return verify();
  } catch (thrown) {
    if (!(thrown instanceof CanonicalError || thrown instanceof WireEncodeError)) throw thrown;
    return { ok: false, code: "wrong_seal", detail: "the transcript has no JSON form" };
  }
}
