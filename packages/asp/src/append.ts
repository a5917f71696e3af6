import { ParticipantRole } from "@depute/contracts/asp/v0/asp_common_pb";
import { type Envelope, Performative, type Sender } from "@depute/contracts/asp/v0/envelope_pb";
import { SessionState } from "@depute/contracts/asp/v0/session_pb";
import { CanonicalError, decodeBase64Url, parseTime } from "@depute/core";
import { WireEncodeError } from "@depute/wire";
import { requireActor } from "./actors.ts";
import { requireConformance } from "./conformance.ts";
import type { AppendContext } from "./context.ts";
import { applyEffects, recipientOf } from "./effects.ts";
import { type Digest, digestOf, verifyDigest } from "./integrity.ts";
import { MAX_CLOCK_SKEW_MS, MAX_MESSAGE_BYTES, MAX_MESSAGES, MAX_SESSION_BYTES } from "./limits.ts";
import type { Move } from "./move.ts";
import { addParty } from "./parties.ts";
import { checkProof, type Proven } from "./proof.ts";
import { type Refusal, Refused } from "./refusal.ts";
import { isPrincipal, isTerminal, type Party, partyOf, type Session, withParty } from "./session.ts";
import { type About, aboutOf, bodyOf, type MessageBody } from "./subject.ts";
import { type Row, rowFor } from "./table.ts";
import { advance, endSession } from "./time.ts";
import { endOf, whyNotNow } from "./why.ts";

/**
 * The only supported version. ASP cannot negotiate versions, so append refuses every other version. (ASP specification)
 */
export const ASP_VERSION = "asp/0.1";

export type Appended =
  | {
      readonly ok: true;
      readonly session: Session;
      readonly ordinal: number;
      /** The verified proof of possession in the message; absent if append had no proof to check. */
      readonly proven?: Proven;
    }
  /** The session without the message. This session includes the effects of deadlines that have passed. */
  | { readonly ok: false; readonly refusal: Refusal; readonly session: Session };

/**
 * Adds a message to a session, or returns the refusal. The function never throws for a message that satisfies
 * the validation rules of its protobuf contract. The checks run in this order: form, time, sender, hash and
 * signature, place in the chain, proof, trust, state machine. Deadlines that have passed are applied to the
 * session first.
 *
 * @param session the session so far; idleSession for its first message
 */
export function append(session: Session, envelope: Envelope, context: AppendContext): Appended {
  const current = advance(session, context.nowMs);
  try {
    return { ok: true, ...appended(current, envelope, context), ordinal: current.messageCount + 1 };
  } catch (thrown) {
    if (thrown instanceof Refused) return { ok: false, refusal: thrown.refusal, session: current };
    throw thrown;
  }
}

function appended(
  session: Session,
  envelope: Envelope,
  context: AppendContext,
): { session: Session; proven?: Proven } {
  const stated = checkForm(session, envelope, context);
  const envelopeSender = withSender(session, envelope, stated, context);
  const sender = partyOf(envelopeSender, stated.agentId);
  if (sender === undefined || sender.presence === "left") {
    throw new Refused("not_a_participant", "the sender is not a participant of this session");
  }
  const { size } = checkIntegrity(envelope, sender, context);
  if (isTerminal(session.state)) throw new Refused("session_ended", endOf(session));
  if (sender.closed) {
    throw new Refused(
      "not_a_participant",
      "the sender has sent CLOSE and may send no more messages: open another session",
    );
  }
  checkPlace(envelopeSender, envelope, sender, context);
  // A session that an earlier version stored has no byte count.
  const byteCount = (session.byteCount ?? 0) + size;
  if (byteCount > MAX_SESSION_BYTES) {
    throw new Refused(
      "limit_exceeded",
      `a session has at most ${MAX_SESSION_BYTES} bytes: continue in another session`,
      {
        limit: "session.bytes",
        max: MAX_SESSION_BYTES,
      },
    );
  }
  const { proof, engine, nowMs } = context;
  const proven = proof && checkProof(engine, stated.dpopProof, sender, proof, nowMs);
  checkTrust(session.state, stated, sender);
  const moved = applyMachine(envelopeSender, envelope, sender, context);
  const after = withParty(moved, sender.agentId, {
    nextSequence: sender.nextSequence + 1,
    orgId: sender.orgId ?? stated.orgId,
  });
  return {
    session: {
      ...after,
      lastHash: envelope.integrity?.hash ?? "",
      messageCount: session.messageCount + 1,
      byteCount,
      updateMs: nowMs,
    },
    ...(proven === undefined ? {} : { proven }),
  };
}

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;

/** Checks the rules of form that protobuf validation cannot express. */
function checkForm(session: Session, envelope: Envelope, { strictIds = true, nowMs }: AppendContext): Sender {
  const { version, messageId, sessionId, sender, timestamp } = envelope;
  if (version !== ASP_VERSION) throw new Refused("unsupported_version", `version must be ${ASP_VERSION}`);
  if (sessionId !== session.sessionId)
    throw new Refused("wrong_session", "sessionId is not the id of this session");
  if (strictIds && !(UUID_V7.test(messageId) && UUID_V7.test(sessionId))) {
    throw new Refused("malformed", "messageId and sessionId must be UUIDv7");
  }
  if (session.format !== undefined && envelope.content?.mimeType !== session.format) {
    throw new Refused(
      "unsupported_format",
      `content.mimeType must be ${session.format}, the format of this session`,
    );
  }
  if (sender === undefined) throw new Refused("malformed", "sender is required");
  const sentMs = parseTime(timestamp);
  if (sentMs === undefined) throw new Refused("malformed", "timestamp is not a time");
  if (Math.abs(sentMs - nowMs) > MAX_CLOCK_SKEW_MS) {
    throw new Refused(
      "clock_skew",
      `timestamp differs by more than ${MAX_CLOCK_SKEW_MS} ms from the server's time: set the sender's clock`,
    );
  }
  return sender;
}

/** Makes the sender of the first message the first party of the session. */
function withSender(
  session: Session,
  envelope: Envelope,
  { agentId }: Sender,
  context: AppendContext,
): Session {
  if (session.state !== SessionState.IDLE) return session;
  if (envelope.performative !== Performative.PROPOSE) {
    throw new Refused("wrong_state", "the first message of a session must be an invitation");
  }
  return addParty(session, context, {
    agentId,
    role: ParticipantRole.INITIATOR,
    side: agentId,
    depth: 0,
    presence: "active",
    introduced: false,
  });
}

function checkIntegrity(envelope: Envelope, { key }: Party, { engine }: AppendContext): Digest {
  const { integrity } = envelope;
  const publicKey = decodeBase64Url(key);
  if (integrity === undefined || publicKey === undefined)
    throw new Refused("malformed", "integrity is required");
  let digest: Digest;
  try {
    digest = digestOf(engine, envelope);
  } catch (thrown) {
    if (!(thrown instanceof CanonicalError || thrown instanceof WireEncodeError)) throw thrown;
    throw new Refused("malformed", "the message has no JSON form");
  }
  if (digest.size > MAX_MESSAGE_BYTES) {
    const detail = `the message has ${digest.size} bytes of canonical JSON, and at most ${MAX_MESSAGE_BYTES} are allowed: split it`;
    throw new Refused("malformed", detail);
  }
  if (digest.text !== integrity.hash)
    throw new Refused("wrong_hash", "integrity.hash is not the hash of this message");
  if (!verifyDigest(engine, digest, integrity.signature, publicKey)) {
    throw new Refused("bad_signature", "integrity.signature is not a signature by the sender's key");
  }
  return digest;
}

/**
 * Checks that the message continues the session's hash chain, and that its sequence number is the sender's next one.
 */
function checkPlace(
  session: Session,
  { messageId, integrity, sequenceNumber }: Envelope,
  { nextSequence }: Party,
  { hasMessage }: AppendContext,
): void {
  if (hasMessage(messageId))
    throw new Refused("duplicate_message", "the session already contains a message with this id");
  if (session.messageCount >= MAX_MESSAGES)
    throw new Refused(
      "limit_exceeded",
      `a session has at most ${MAX_MESSAGES} messages: continue in another session`,
      {
        limit: "session.messages",
        max: MAX_MESSAGES,
      },
    );
  if (integrity?.previousHash !== session.lastHash) {
    throw new Refused(
      "head_moved",
      "previousHash is not the hash of the newest message: read it, then sign again",
    );
  }
  if (sequenceNumber !== BigInt(nextSequence)) {
    throw new Refused("wrong_sequence", `sequenceNumber must be ${nextSequence}, the sender's next number`);
  }
}

/**
 * Compares the sender's organization and stated trust score with those stored when the sender joined. The score is
 * compared only after the introductions, because an agent may not know its stored score earlier. The stated score has
 * no other use.
 */
function checkTrust(state: SessionState, { orgId, trustScore }: Sender, party: Party): void {
  if (party.orgId !== undefined && party.orgId !== orgId) {
    throw new Refused(
      "organization_mismatch",
      "sender.orgId must be the organization with which the sender joined",
    );
  }
  const isNoted = state !== SessionState.IDLE && state !== SessionState.INVITED;
  if (isNoted && party.trustScore !== undefined && party.trustScore !== trustScore) {
    throw new Refused(
      "trust_mismatch",
      `sender.trustScore must be ${party.trustScore}, the score that was stored when the sender joined: read it from the session's participants`,
    );
  }
}

function applyMachine(session: Session, envelope: Envelope, sender: Party, context: AppendContext): Session {
  const { performative } = envelope;
  const body = bodyOf(envelope);
  const subject = aboutOf(session, body);
  const row = rowFor(performative, subject.subject);
  const next = row?.moves.get(session.state);
  if (row === undefined || next === undefined) {
    throw new Refused("wrong_state", whyNotNow(session, performative));
  }
  if (session.closingMs !== undefined && !row.whenClosing) {
    throw new Refused(
      "closing",
      "a party has sent CLOSE, so nothing new can be opened: answer the open objects before the other side closes",
    );
  }
  if (!row.by.includes("newcomer")) {
    checkRecipient(session, envelope, body);
    requireActor(session, sender, row, subject.object);
    requireConformance(session, sender, performative, subject.subject, body);
  }
  checkConstraints(performative, sender, subject);
  const move: Move = { ...subject, envelope, body, sender, context };
  return enter(applyEffects(session, move), row, next, context.nowMs);
}

function checkRecipient(session: Session, envelope: Envelope, body: MessageBody): void {
  const recipient = recipientOf(envelope);
  if (recipient === undefined || partyOf(session, recipient) !== undefined) return;
  if (body.case === "delegate" && body.value.targetAgent === recipient) return;
  throw new Refused("unknown_party", "the recipient is not a participant of the session");
}

/**
 * Checks a message against the constraints of the object that the message answers: the allowed performatives, and
 * the sender's minimum trust score.
 */
function checkConstraints(
  performative: Performative,
  { agentId, trustScore }: Party,
  { object }: About,
): void {
  if (object === undefined || object.author === agentId) return;
  const { allowed, requiredTrust } = object;
  if (allowed !== undefined && !allowed.includes(performative)) {
    throw new Refused("performative_not_allowed", "the answered message does not allow this performative");
  }
  if (requiredTrust !== undefined && (trustScore ?? 0) < requiredTrust) {
    throw new Refused("insufficient_trust", `the sender's trust score must be at least ${requiredTrust}`);
  }
}

/**
 * Returns the session after a message. `next` is a new state, the same state, or the state before the escalation. If
 * the row requires a message of both parties, the state changes only with the second message.
 */
function enter(session: Session, row: Row, next: SessionState | "stay" | "return", nowMs: number): Session {
  if (next === "stay") return session;
  if (next === "return") {
    const { returnsTo = SessionState.CONVERSING, ...rest } = session;
    return { ...rest, state: returnsTo };
  }
  if (row.both && !isDoneByBoth(session, row)) return session;
  if (next === SessionState.ESCALATED) return { ...session, state: next, returnsTo: session.state };
  if (next === SessionState.CLOSED) return endSession(session, next, "closed", nowMs);
  if (next === SessionState.FAILED) {
    const end = row.performative === Performative.REJECT ? "rejected" : "withdrawn";
    return endSession(session, next, end, nowMs);
  }
  return { ...session, state: next };
}

function isDoneByBoth({ parties }: Session, { performative }: Row): boolean {
  return parties
    .filter(isPrincipal)
    .every(({ introduced, closed }) => (performative === Performative.CLOSE ? closed : introduced));
}
