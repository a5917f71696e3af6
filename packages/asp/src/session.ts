import type { ConformanceLevel, RejectionCode } from "@depute/contracts/asp/v0/asp_common_pb";
import { type DelegationAuthority, ParticipantRole } from "@depute/contracts/asp/v0/asp_common_pb";
import type { Performative } from "@depute/contracts/asp/v0/envelope_pb";
import { SessionState } from "@depute/contracts/asp/v0/session_pb";

/** The previous hash of the first message. (ASP examples "Simple negotiation") */
export const FIRST_PREVIOUS_HASH = `sha256:${"0".repeat(64)}`;

/** The kinds of objects that a session opens. Messages refer to these objects. */
export type ObjectKind = "invitation" | "proposal" | "commitment" | "delegation" | "question" | "escalation";

/**
 * An object with the status `open` awaits an answer. Other objects are closed, except accepted delegations and
 * commitments.
 */
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
  /** The public key in base64url that verifies the party's signatures. */
  readonly key: string;
  /** RFC 7638 thumbprint of the key that signs proofs, if it differs from the signing key. */
  readonly proofThumbprint?: string;
  /** The trust score from 0 to 100 at the time when the party joined; absent without a trust service. */
  readonly trustScore?: number;
  /** The conformance level that the party's card declares. If absent, the party supports the whole protocol. */
  readonly conformance?: ConformanceLevel;
  /** The sequence number of the party's next message. */
  readonly nextSequence: number;
  /**
   * The principal that the party represents: the party itself, or the principal at the top of its chain of
   * delegations.
   */
  readonly side: string;
  /** 0 for the two parties. For a delegate, the number of delegations between the delegate and its principal. */
  readonly depth: number;
  readonly presence: "invited" | "active" | "left";
  /** Whether the party has introduced itself. A delegate introduces itself by its first message. */
  readonly introduced: boolean;
  /** Whether the party has sent CLOSE. */
  readonly closed: boolean;
  readonly delegationId?: string;
  readonly authority?: DelegationAuthority;
}

/** An obligation that one party has by a commitment. */
export interface Obligation {
  readonly party: string;
  /**
   * overdue: the due time has passed. claimed: the party claims fulfilment. confirmed: the other side agrees.
   * refused: the other side contests the fulfilment.
   */
  readonly status: "outstanding" | "overdue" | "claimed" | "confirmed" | "refused";
  /** The time by which the obligation is due, in epoch milliseconds; absent if the obligation may stay open. */
  readonly dueMs?: number;
}

/** Escrow of a commitment. The commitment's author is the payer. */
export interface EscrowAccount {
  /** The amount in whole units of the currency, as in the body of the COMMIT message. */
  readonly amount: number;
  readonly currency: string;
  readonly releaseCondition: string;
  /** The state of the escrow; absent until the commitment is accepted. */
  readonly state?: "held" | "released" | "refunded" | "forfeited";
}

/** An object that a message opened. */
export interface SessionObject {
  readonly id: string;
  readonly kind: ObjectKind;
  readonly status: ObjectStatus;
  readonly author: string;
  /** The agent that must answer. If absent, any agent of another side may answer. */
  readonly addressee?: string;
  /** Ordinal of the message that opened the object. */
  readonly ordinal: number;
  /** The time at which the object lapses, in epoch milliseconds. If absent, the object does not lapse. */
  readonly expireMs?: number;
  /** The performatives that may answer the object, if the opening message limits them. */
  readonly allowed?: readonly Performative[];
  /** The minimum trust score, from 0 to 100, of an answering agent; absent for none. */
  readonly requiredTrust?: number;
  /** Number of counter-proposals that preceded this proposal. */
  readonly round: number;
  /** The id of the object about which a question asks; absent if the question is about no object. */
  readonly about?: string;
  readonly obligations?: readonly Obligation[];
  /** The time by which all obligations of a commitment must be fulfilled, in epoch milliseconds; absent for none. */
  readonly dueMs?: number;
  readonly escrow?: EscrowAccount;
  /** The agent that a delegation adds to the session. `authority` states the decisions that the agent may make. */
  readonly target?: string;
  readonly authority?: DelegationAuthority;
  /** The agent that must act after the delegate has reported. */
  readonly returnTo?: string;
  /** The message with which the delegate reported; absent until then. */
  readonly result?: {
    readonly messageId: string;
    readonly ordinal: number;
    readonly hash: string;
    readonly timestamp: string;
  };
  /** The reason in the latest REJECT of the object; absent for none. */
  readonly rejection?: { readonly code: RejectionCode; readonly retryable: boolean };
}

/** The rating of one participant by another. */
export interface PeerRating {
  readonly from: string;
  readonly to: string;
  readonly stars: number;
}

/**
 * A session as plain JSON, so that a store can contain it. A session is immutable: append and advance return a new
 * session. Times are epoch milliseconds of the server's clock.
 */
export interface Session {
  readonly sessionId: string;
  readonly state: SessionState;
  /** The state to which an escalated session returns; absent while the session is not escalated. */
  readonly returnsTo?: SessionState;
  /** The organization that owns the session; absent for none. */
  readonly organization?: string;
  readonly parties: readonly Party[];
  readonly objects: Readonly<Record<string, SessionObject>>;
  readonly ratings: readonly PeerRating[];
  readonly lastHash: string;
  readonly messageCount: number;
  /** Total bytes of all messages in their canonical forms. */
  readonly byteCount: number;
  readonly createMs: number;
  readonly updateMs: number;
  /** The time in epoch milliseconds at which the session ends at the latest. */
  readonly expireMs: number;
  /** The media type of the messages' content, if the invitation names one. */
  readonly format?: string;
  /**
   * The time by which both parties must have introduced themselves, in epoch milliseconds; absent until the invitation
   * is accepted.
   */
  readonly introduceMs?: number;
  /** The time in epoch milliseconds at which the first of the two parties closed; absent until then. */
  readonly closingMs?: number;
  readonly endMs?: number;
  /** The reason why the session ended; absent while it continues. */
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

/** Whether a session in this state has ended. */
export function isTerminal(state: SessionState): boolean {
  return TERMINAL.has(state);
}

/** Returns a session before its first message, at the time `nowMs`. */
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

/** Returns the party of the agent with the given id; undefined if the agent is not in the session. */
export function partyOf(session: Session, agentId: string): Party | undefined {
  return session.parties.find((party) => party.agentId === agentId);
}

/** Returns the object with the given id; undefined if the session has no such object. */
export function objectOf(session: Session, id: string): SessionObject | undefined {
  // Ids come from untrusted input, so `__proto__` must not find an inherited member.
  return Object.hasOwn(session.objects, id) ? session.objects[id] : undefined;
}

/** Returns the objects of a kind, or all objects, in the order of creation. */
export function objectsOf(session: Session, kind?: ObjectKind): SessionObject[] {
  return Object.values(session.objects)
    .filter((object) => kind === undefined || object.kind === kind)
    .sort((a, b) => a.ordinal - b.ordinal);
}

/** Whether the party is one of the two principals of the session. All other parties are delegates. */
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
