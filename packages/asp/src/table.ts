import { Performative } from "@depute/contracts/asp/v0/envelope_pb";
import { SessionState } from "@depute/contracts/asp/v0/session_pb";

/**
 * The subjects of messages. The subject of an answer is the kind of the answered object. `fulfilment` stands
 * for an accepted commitment whose obligations the other side claims to have fulfilled.
 */
export type Subject =
  | "invitation"
  | "identity"
  | "proposal"
  | "commitment"
  | "fulfilment"
  | "delegation"
  | "question"
  | "escalation"
  | "resolution"
  | "talk"
  | "session";

/**
 * The roles that may send a message.
 *
 * - `newcomer`: the agent that begins a session.
 * - `principal`: one of the two parties.
 * - `participant`: a principal, or a delegate that has accepted.
 * - `addressee`: the named recipient of the answered object; if none is named, a party on the other side.
 * - `deputy`: a delegate with full authority for the addressee.
 * - `representative`: a delegate with full authority, for objects that it opens itself.
 * - `author`: the agent that opened the referenced object.
 * - `target`: the agent that a delegation brings in.
 */
export type Actor =
  | "newcomer"
  | "principal"
  | "participant"
  | "addressee"
  | "deputy"
  | "representative"
  | "author"
  | "target";

/** The state after a message: a given state, `stay` for the same state, or `return` for the state before ESCALATE. */
export type Next = SessionState | "stay" | "return";

/**
 * One row of ASP's table of transitions: a message, the roles that may send it, and its effect on the
 * session's state.
 */
export interface Row {
  readonly performative: Performative;
  readonly subject: Subject;
  readonly by: readonly Actor[];
  /** The next state for each state in which the message is allowed. */
  readonly moves: ReadonlyMap<SessionState, Next>;
  /** Whether the state changes only after both parties have sent this message. */
  readonly both: boolean;
  /** Whether the message is allowed after one party has closed. */
  readonly whenClosing: boolean;
}

const { IDLE, INVITED, INTRODUCED, CONVERSING, AGREEING, EXECUTING, CLOSED, ESCALATED, FAILED } =
  SessionState;
const { PROPOSE, ACCEPT, REJECT, COUNTER, INFORM, QUERY, CLARIFY } = Performative;
const { COMMIT, DELEGATE, ESCALATE, WITHDRAW, OBSERVE, CLOSE } = Performative;

/** The working states. In each of them, some messages leave the state unchanged. */
const TALKING = [CONVERSING, AGREEING, EXECUTING] as const;

type Moves = readonly (readonly [SessionState, Next])[];

const stay = (...states: SessionState[]): Moves => states.map((state) => [state, "stay"]);
const to = (next: Next, ...states: SessionState[]): Moves => states.map((state) => [state, next]);

interface Flags {
  readonly both?: boolean;
  readonly whenClosing?: boolean;
}

function row(
  performative: Performative,
  subject: Subject,
  by: Actor[],
  moves: Moves,
  { both = false, whenClosing = false }: Flags = {},
): Row {
  return { performative, subject, by, moves: new Map(moves), both, whenClosing };
}

/**
 * The state machine: for each message, the roles that may send it, the states that allow it, and the next state. A
 * message without a row is refused. (ASP specification "State machine", ASP "Delegation chain") Where ASP is silent,
 * the rule is Depute's choice: WITHDRAW of an invitation ends the session. An identity is an INFORM of type
 * `identity`, and a decision of a higher authority is an INFORM of type `resolution`. ACCEPT confirms an accepted
 * commitment, and REJECT contests it. Apart from its own delegation, a delegate accepts only proposals, because
 * binding messages belong to the two parties.
 */
export const TABLE: readonly Row[] = [
  row(PROPOSE, "invitation", ["newcomer"], to(INVITED, IDLE)),
  row(ACCEPT, "invitation", ["addressee"], stay(INVITED)),
  row(COUNTER, "invitation", ["addressee"], stay(INVITED)),
  row(REJECT, "invitation", ["addressee"], to(FAILED, INVITED)),
  row(WITHDRAW, "invitation", ["author"], to(FAILED, INVITED)),
  row(INFORM, "identity", ["principal"], to(INTRODUCED, INVITED), { both: true }),

  row(PROPOSE, "proposal", ["principal"], [...to(CONVERSING, INTRODUCED), ...stay(CONVERSING)]),
  row(ACCEPT, "proposal", ["addressee", "deputy"], stay(CONVERSING)),
  row(REJECT, "proposal", ["addressee", "deputy"], stay(CONVERSING)),
  row(COUNTER, "proposal", ["addressee", "deputy"], stay(CONVERSING)),
  row(WITHDRAW, "proposal", ["author"], stay(CONVERSING), { whenClosing: true }),

  row(COMMIT, "commitment", ["principal"], to(AGREEING, CONVERSING)),
  row(ACCEPT, "commitment", ["addressee"], to(EXECUTING, AGREEING)),
  row(REJECT, "commitment", ["addressee"], to(CONVERSING, AGREEING), { whenClosing: true }),
  row(COUNTER, "commitment", ["addressee"], to(CONVERSING, AGREEING)),
  row(WITHDRAW, "commitment", ["author"], to(CONVERSING, AGREEING), { whenClosing: true }),
  row(ACCEPT, "fulfilment", ["principal"], stay(EXECUTING), { whenClosing: true }),
  row(REJECT, "fulfilment", ["principal"], stay(EXECUTING), { whenClosing: true }),

  row(DELEGATE, "delegation", ["principal", "representative"], stay(CONVERSING)),
  row(ACCEPT, "delegation", ["target"], stay(...TALKING)),
  row(REJECT, "delegation", ["target"], stay(...TALKING), { whenClosing: true }),
  row(WITHDRAW, "delegation", ["author", "target"], stay(...TALKING), { whenClosing: true }),

  row(INFORM, "talk", ["participant"], [...to(CONVERSING, INTRODUCED), ...stay(...TALKING, ESCALATED)], {
    whenClosing: true,
  }),
  row(OBSERVE, "talk", ["participant"], [...to(CONVERSING, INTRODUCED), ...stay(...TALKING, ESCALATED)], {
    whenClosing: true,
  }),
  row(QUERY, "question", ["participant"], [...to(CONVERSING, INTRODUCED), ...stay(...TALKING)]),
  row(CLARIFY, "question", ["participant"], stay(...TALKING)),
  row(WITHDRAW, "question", ["author"], stay(...TALKING), { whenClosing: true }),

  row(ESCALATE, "escalation", ["participant"], to(ESCALATED, INTRODUCED, ...TALKING)),
  row(INFORM, "resolution", ["author"], to("return", ESCALATED), { whenClosing: true }),
  row(WITHDRAW, "escalation", ["author"], to("return", ESCALATED), { whenClosing: true }),

  row(CLOSE, "session", ["participant"], to(CLOSED, INTRODUCED, ...TALKING, ESCALATED), {
    both: true,
    whenClosing: true,
  }),
];

const byKey = new Map(TABLE.map((line) => [`${line.performative}/${line.subject}`, line]));

/** Returns the row of a message; undefined if no state allows the message. */
export function rowFor(performative: Performative, subject: Subject): Row | undefined {
  return byKey.get(`${performative}/${subject}`);
}
