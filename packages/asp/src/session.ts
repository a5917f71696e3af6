import type { ConformanceLevel, RejectionCode } from "@depute/contracts/asp/v0/common_pb";
import { type DelegationAuthority, ParticipantRole } from "@depute/contracts/asp/v0/common_pb";
import type { Performative } from "@depute/contracts/asp/v0/envelope_pb";
import { SessionState } from "@depute/contracts/asp/v0/session_pb";

/** The hash before the first message. (ASP examples "Simple negotiation") */
export const FIRST_PREVIOUS_HASH = `sha256:${"0".repeat(64)}`;

/** What can be opened in a session and referred to. */
export type ObjectKind = "invitation" | "proposal" | "commitment" | "delegation" | "question" | "escalation";

/** An open object awaits something; the others are closed, but for an accepted delegation or commitment. */
export type ObjectStatus =
  | "open"
  | "accepted"
  | "rejected"
  | "countered"
  | "withdrawn"
  | "expired"
  | "answered"
  | "reported"
  | "fulfilled"
  | "resolved"
  | "lapsed";

/** An agent in a session. */
export interface Party {
  readonly agentId: string;
  readonly orgId?: string;
  readonly role: ParticipantRole;
  /** The key of its signatures, base64url. */
  readonly key: string;
  /** RFC 7638 thumbprint of the key of its proofs, where that is another one. */
  readonly proofThumbprint?: string;
  /** Its score when it came, where the server knows one. */
  readonly trustScore?: number;
  /** How much of the protocol its card says that it speaks. */
  readonly conformance?: ConformanceLevel;
  /** The sequence number of its next message. */
  readonly nextSequence: number;
  /** The one of the two parties on whose side it is: itself, or who brought it in, at first or second hand. */
  readonly side: string;
  /** 0 for the two parties; delegations between a delegate and its side. */
  readonly depth: number;
  readonly presence: "invited" | "active" | "left";
  /** Whether it has shown its identity; delegates do by their first message. */
  readonly introduced: boolean;
  /** Whether it has sent CLOSE. */
  readonly closed: boolean;
  readonly delegationId?: string;
  readonly authority?: DelegationAuthority;
}

/** What one party owes. */
export interface Obligation {
  readonly party: string;
  /** overdue: its time has passed; claimed: it says that it is done; confirmed: the other side agrees. */
  readonly status: "outstanding" | "overdue" | "claimed" | "confirmed" | "refused";
  /** When it has to be done, epoch milliseconds. */
  readonly dueMs?: number;
}

/** Money that is held for a commitment. The author has paid it in. */
export interface EscrowAccount {
  /** Whole units of the currency, as the document has them. */
  readonly amount: number;
  readonly currency: string;
  readonly releaseCondition: string;
  /** Absent until the commitment is accepted. */
  readonly state?: "held" | "released" | "refunded" | "forfeited";
}

/** Something that a message opened. */
export interface SessionObject {
  readonly id: string;
  readonly kind: ObjectKind;
  readonly status: ObjectStatus;
  readonly author: string;
  /** The agent that is to answer; absent: anyone on another side. */
  readonly addressee?: string;
  /** Ordinal of the message that opened it. */
  readonly ordinal: number;
  /** When it lapses, epoch milliseconds. */
  readonly expireMs?: number;
  /** What may answer it, where its message says. */
  readonly allowed?: readonly Performative[];
  /** The score that who answers needs. */
  readonly requiredTrust?: number;
  /** Counter-proposals before it. */
  readonly round: number;
  /** What a question is about. */
  readonly about?: string;
  readonly obligations?: readonly Obligation[];
  /** When all of a commitment has to be done, epoch milliseconds. */
  readonly dueMs?: number;
  readonly escrow?: EscrowAccount;
  /** The agent that a delegation brings in, and how far it may go. */
  readonly target?: string;
  readonly authority?: DelegationAuthority;
  /** Who is to act when the delegate has reported. */
  readonly returnTo?: string;
  /** The message by which a delegate reported. */
  readonly result?: {
    readonly messageId: string;
    readonly ordinal: number;
    readonly hash: string;
    readonly timestamp: string;
  };
  /** Why it was rejected. */
  readonly rejection?: { readonly code: RejectionCode; readonly retryable: boolean };
}

/** What a participant thinks of another. */
export interface PeerRating {
  readonly from: string;
  readonly to: string;
  readonly stars: number;
}

/**
 * A session: plain JSON, so that it can be stored as it is. It is never changed: append and advance give a new one.
 * Times are epoch milliseconds of the server's clock.
 */
export interface Session {
  readonly sessionId: string;
  readonly state: SessionState;
  /** Where an escalated session goes back to. */
  readonly returnsTo?: SessionState;
  readonly parties: readonly Party[];
  readonly objects: Readonly<Record<string, SessionObject>>;
  readonly ratings: readonly PeerRating[];
  readonly lastHash: string;
  readonly messageCount: number;
  /** Bytes of all messages, in their canonical forms. */
  readonly byteCount: number;
  readonly createMs: number;
  readonly updateMs: number;
  /** When the session ends at the latest. */
  readonly expireMs: number;
  /** The type of its messages' content, where the invitation names one. */
  readonly format?: string;
  /** Until when the two parties have to introduce themselves. */
  readonly introduceMs?: number;
  /** When the first of the two parties closed. */
  readonly closingMs?: number;
  readonly endMs?: number;
  /** How it ended. */
  readonly end?:
    | "closed"
    | "rejected"
    | "withdrawn"
    | "invitation_timeout"
    | "idle"
    | "expired"
    | "close_grace";
}

const TERMINAL: ReadonlySet<SessionState> = new Set([SessionState.CLOSED, SessionState.FAILED]);

/** Whether a state is one that a session never leaves. */
export function isTerminal(state: SessionState): boolean {
  return TERMINAL.has(state);
}

/** A session before its first message, at a time. */
export function idleSession(sessionId: string, nowMs: number): Session {
  return {
    sessionId,
    state: SessionState.IDLE,
    parties: [],
    objects: {},
    ratings: [],
    lastHash: FIRST_PREVIOUS_HASH,
    messageCount: 0,
    byteCount: 0,
    createMs: nowMs,
    updateMs: nowMs,
    expireMs: Number.MAX_SAFE_INTEGER,
  };
}

/** The party of an agent's id. */
export function partyOf(session: Session, agentId: string): Party | undefined {
  return session.parties.find((party) => party.agentId === agentId);
}

/** The object of an id. */
export function objectOf(session: Session, id: string): SessionObject | undefined {
  // Ids come from strangers: `__proto__` must not find what every object has.
  return Object.hasOwn(session.objects, id) ? session.objects[id] : undefined;
}

/** Objects of a kind, in the order in which they were opened. */
export function objectsOf(session: Session, kind?: ObjectKind): SessionObject[] {
  return Object.values(session.objects)
    .filter((object) => kind === undefined || object.kind === kind)
    .sort((a, b) => a.ordinal - b.ordinal);
}

/** Whether one of the two that began the session. */
export function isPrincipal({ role }: Party): boolean {
  return role !== ParticipantRole.DELEGATE;
}

export function withParty(session: Session, agentId: string, change: Partial<Party>): Session {
  const parties = session.parties.map((party) =>
    party.agentId === agentId ? { ...party, ...change } : party,
  );
  return { ...session, parties };
}

export function withObject(session: Session, object: SessionObject): Session {
  return { ...session, objects: { ...session.objects, [object.id]: object } };
}
