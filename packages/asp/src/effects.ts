import { ParticipantRole, RejectionCode } from "@depute/contracts/asp/v0/asp_common_pb";
import { type Envelope, Performative } from "@depute/contracts/asp/v0/envelope_pb";
import { isRepresentative } from "./actors.ts";
import {
  acceptCommitment,
  answerClaims,
  awaitsAnswer,
  claim,
  dueMsOf,
  escrowOf,
  obligationsOf,
} from "./commitments.ts";
import { speaks } from "./conformance.ts";
import { leave } from "./delegations.ts";
import { checkCard } from "./identity.ts";
import {
  DEFAULT_DURATION_MS,
  INVITATION_TIMEOUT_MS,
  MAX_COUNTER_ROUNDS,
  MAX_DELEGATION_DEPTH,
  MAX_DURATION_MS,
} from "./limits.ts";
import type { Move } from "./move.ts";
import { openObject } from "./open.ts";
import { addParty } from "./parties.ts";
import { isRetryable, Refused } from "./refusal.ts";
import {
  isPrincipal,
  type ObjectStatus,
  objectsOf,
  type Party,
  partyOf,
  type Session,
  type SessionObject,
  withObject,
  withParty,
} from "./session.ts";
import { type MessageBody, RESULT_TYPE } from "./subject.ts";

type Body<Case extends MessageBody["case"]> = Extract<MessageBody, { case: Case }>["value"];

/**
 * Applies a message to the session's objects and parties. The table of transitions, not this function, determines the
 * session's next state.
 *
 * @throws Refused if the message breaks a rule of the object or party that it concerns
 */
export function applyEffects(session: Session, move: Move): Session {
  const { body, object, sender } = move;
  switch (body.case) {
    case "propose":
      return move.subject === "invitation"
        ? invite(session, move, body.value)
        : propose(session, move, body.value);
    case "accept":
      return accept(session, move);
    case "reject":
      return reject(session, move, body.value);
    case "counter":
      return counter(session, move, body.value);
    case "inform":
      return inform(session, move, body.value);
    case "query":
      return openObject(session, move, { id: body.value.queryId, kind: "question" });
    case "clarify":
      return openObject(session, move, { kind: "question", about: body.value.referenceId });
    case "commit":
      return commit(session, move, body.value);
    case "delegate":
      return delegate(session, move, body.value);
    case "escalate":
      return openObject(session, move, { kind: "escalation" });
    case "withdraw":
      return withdraw(session, object);
    case "observe":
      return session;
    case "close":
      return close(session, sender, body.value, move);
  }
}

function invite(
  session: Session,
  move: Move,
  { proposalId, validUntil, maxDurationMs, messageFormat: format }: Body<"propose">,
): Session {
  const { envelope, context } = move;
  const addressee = recipientOf(envelope);
  if (addressee === undefined) throw new Refused("malformed", "an invitation must have a recipient");
  const durationMs = Math.min(Number(maxDurationMs ?? DEFAULT_DURATION_MS), MAX_DURATION_MS);
  if (format !== undefined && format !== envelope.content?.mimeType) {
    throw new Refused("unsupported_format", "content.mimeType of an invitation must be its messageFormat");
  }
  const opened = {
    ...session,
    expireMs: context.nowMs + durationMs,
    ...(format === undefined ? {} : { format }),
  };
  const joined = addParty(opened, context, {
    agentId: addressee,
    role: ParticipantRole.COUNTERPARTY,
    side: addressee,
    depth: 0,
    presence: "invited",
    introduced: false,
  });
  const waitMs = Number(envelope.constraints?.maxResponseTimeMs ?? INVITATION_TIMEOUT_MS);
  return openObject(joined, move, { id: proposalId, kind: "invitation", addressee, validUntil, waitMs });
}

function propose(session: Session, move: Move, { proposalId, validUntil }: Body<"propose">): Session {
  return openObject(session, move, {
    id: proposalId,
    kind: "proposal",
    validUntil,
    ...addressed(session, move),
  });
}

function accept(session: Session, { object, sender, subject, context }: Move): Session {
  const about = needed(object);
  switch (subject) {
    case "invitation": {
      const accepted = withObject(session, { ...about, status: "accepted" });
      const parties = accepted.parties.map((party) => ({ ...party, presence: "active" as const }));
      return { ...accepted, parties, introduceMs: context.nowMs + INVITATION_TIMEOUT_MS };
    }
    case "commitment":
      return withObject(session, acceptCommitment(about, sender.agentId));
    case "fulfilment":
      requireClaim(session, about, sender);
      return answerClaims(session, about, sender.side, "confirmed");
    case "delegation":
      return withParty(withStatus(session, about, "accepted"), sender.agentId, {
        presence: "active",
        introduced: true,
      });
    default:
      return withStatus(session, about, "accepted");
  }
}

function reject(
  session: Session,
  { object, sender, subject }: Move,
  { code, retryable }: Body<"reject">,
): Session {
  const rejectionCode = code ?? RejectionCode.OTHER;
  const newObject: SessionObject = {
    ...needed(object),
    rejection: { code: rejectionCode, retryable: isRetryable(rejectionCode, retryable) },
  };
  if (subject === "fulfilment") {
    requireClaim(session, newObject, sender);
    return answerClaims(session, newObject, sender.side, "refused");
  }
  const rejected = withStatus(session, newObject, "rejected");
  return subject === "delegation" ? leave(rejected, sender.agentId) : rejected;
}

/** Opens a counter-proposal: a new proposal that replaces the answered one. */
function counter(session: Session, move: Move, { proposalId, validUntil }: Body<"counter">): Session {
  const { subject } = move;
  const about = needed(move.object);
  if (about.round >= MAX_COUNTER_ROUNDS) {
    throw new Refused(
      "limit_exceeded",
      `at most ${MAX_COUNTER_ROUNDS} counter-proposals may follow each other: accept, reject or propose anew`,
      {
        limit: "session.counter_rounds",
        max: MAX_COUNTER_ROUNDS,
      },
    );
  }
  const kind = subject === "invitation" ? "invitation" : "proposal";
  const answered = withStatus(session, about, "countered");
  const invitation = kind === "invitation" ? { addressee: about.author, waitMs: INVITATION_TIMEOUT_MS } : {};
  return openObject(answered, move, {
    id: proposalId,
    kind,
    validUntil,
    round: about.round + 1,
    ...addressed(session, move),
    ...invitation,
  });
}

function inform(session: Session, move: Move, { informType, references, data }: Body<"inform">): Session {
  const { sender, subject, object, envelope } = move;
  if (subject === "identity") {
    if (session.introduceMs === undefined)
      throw new Refused("wrong_state", "the invitation is not accepted yet: wait for ACCEPT");
    if (sender.introduced) throw new Refused("wrong_state", "the party has already introduced itself");
    checkCard(sender, data);
    return withParty(session, sender.agentId, { introduced: true });
  }
  if (subject === "resolution") return withStatus(session, needed(object), "resolved");
  let current = session;
  const referencedIds = new Set(references?.values);
  for (const question of objectsOf(session, "question")) {
    const isMeant =
      referencedIds.has(question.id) || (question.about !== undefined && referencedIds.has(question.about));
    const answers = isMeant && question.status === "open" && question.author !== sender.agentId;
    if (answers) current = withStatus(current, question, "answered");
  }
  if (informType !== RESULT_TYPE) return current;
  for (const reported of objectsOf(session)) {
    if (!referencedIds.has(reported.id) || reported.status !== "accepted") continue;
    if (reported.kind === "delegation" && reported.target === sender.agentId) {
      const { messageId, timestamp, integrity } = envelope;
      const result = { messageId, timestamp, hash: integrity?.hash ?? "", ordinal: session.messageCount + 1 };
      current = withObject(current, { ...reported, status: "reported", result });
    }
    if (reported.kind === "commitment" && (isPrincipal(sender) || isRepresentative(sender))) {
      current = claim(current, reported, sender.side);
    }
  }
  return current;
}

function commit(session: Session, move: Move, body: Body<"commit">): Session {
  const escrow = escrowOf(body);
  const dueMs = dueMsOf(body.deadline, move.context.nowMs);
  return openObject(session, move, {
    id: body.commitmentId,
    kind: "commitment",
    obligations: obligationsOf(session, body, move.context.nowMs),
    ...(dueMs === undefined ? {} : { dueMs }),
    ...(escrow === undefined ? {} : { escrow }),
    ...addressed(session, move),
  });
}

/**
 * Adds a delegate as a participant. All participants see the delegate, which may send messages after it has accepted.
 */
function delegate(session: Session, move: Move, body: Body<"delegate">): Session {
  const { sender, context } = move;
  const { delegationId, targetAgent: target, authority, returnTo } = body;
  if (sender.depth >= MAX_DELEGATION_DEPTH)
    throw new Refused(
      "limit_exceeded",
      "delegations are nested too deep: let a delegate of a lower depth delegate",
      {
        limit: "session.delegation_depth",
        max: MAX_DELEGATION_DEPTH,
      },
    );
  if (returnTo !== undefined && partyOf(session, returnTo) === undefined) {
    throw new Refused("unknown_party", "returnTo is not a participant of the session");
  }
  const joined = addParty(session, context, {
    agentId: target,
    role: ParticipantRole.DELEGATE,
    side: sender.side,
    depth: sender.depth + 1,
    presence: "invited",
    introduced: false,
    delegationId,
    authority,
  });
  if (!speaks(partyOf(joined, target)?.conformance, Performative.ACCEPT)) {
    throw new Refused("not_conformant", "targetAgent declares a conformance level without delegations");
  }
  return openObject(joined, move, {
    id: delegationId,
    kind: "delegation",
    target,
    authority,
    returnTo: returnTo ?? sender.agentId,
  });
}

function withdraw(session: Session, object: SessionObject | undefined): Session {
  const about = needed(object);
  const withdrawn = withStatus(session, about, about.kind === "escalation" ? "resolved" : "withdrawn");
  return about.kind === "delegation" && about.target !== undefined
    ? leave(withdrawn, about.target)
    : withdrawn;
}

/**
 * Applies CLOSE: marks a party as closed, or removes a delegate. The outcome `fulfilled` also confirms the other side's
 * uncontested obligations, because ASP defines no other message that confirms a result.
 */
function close(
  session: Session,
  sender: Party,
  { outcome, ratings }: Body<"close">,
  { context }: Move,
): Session {
  const stars = (ratings?.values ?? []).map(({ agentId, stars }) => ({
    from: sender.agentId,
    to: agentId,
    stars,
  }));
  const rated = new Set<string>();
  for (const { to } of stars) {
    if (to === sender.agentId || rated.has(to) || partyOf(session, to) === undefined) {
      throw new Refused("unknown_party", "ratings must be about other participants, at most one for each");
    }
    rated.add(to);
  }
  const closed = withParty({ ...session, ratings: [...session.ratings, ...stars] }, sender.agentId, {
    closed: true,
  });
  if (!isPrincipal(sender)) return leave(closed, sender.agentId);
  let current: Session = { ...closed, closingMs: closed.closingMs ?? context.nowMs };
  if (outcome !== "fulfilled") return current;
  for (const commitment of objectsOf(current, "commitment")) {
    if (commitment.status !== "accepted") continue;
    current = answerClaims(current, commitment, sender.side, "confirmed", true);
  }
  return current;
}

/**
 * Returns the party that must answer a new object: the recipient of the message; empty for a message to all.
 *
 * @throws Refused unknown_party if the recipient is on the sender's side
 */
function addressed(session: Session, { envelope, sender }: Move): { addressee?: string } {
  const addressee = recipientOf(envelope);
  if (addressee === undefined) return {};
  if (partyOf(session, addressee)?.side === sender.side) {
    throw new Refused("unknown_party", "the recipient must be on another side than the sender");
  }
  return { addressee };
}

/** Returns the agent to which a message is addressed; undefined if it is addressed to all. */
export function recipientOf({ recipient }: Envelope): string | undefined {
  return recipient.case === "recipientAgent" ? recipient.value.agentId : recipient.value;
}

function requireClaim(session: Session, commitment: SessionObject, { side }: Party): void {
  if (awaitsAnswer(session, commitment, side)) return;
  throw new Refused(
    "wrong_state",
    "the other side has not claimed any fulfilment yet: wait for its INFORM of type result",
  );
}

function needed(object: SessionObject | undefined): SessionObject {
  if (object === undefined)
    throw new Refused("unknown_reference", "the message must refer to an object of the session");
  return object;
}

function withStatus(session: Session, object: SessionObject, status: ObjectStatus): Session {
  return withObject(session, { ...object, status });
}
