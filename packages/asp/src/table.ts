import { Performative } from "@depute/contracts/asp/v0/envelope_pb";
import { SessionState } from "@depute/contracts/asp/v0/session_pb";

/**
 * What a message is about. For an answer it is the kind of what it refers to; a `fulfilment` is a commitment that was
 * accepted and of which the other side says that it is done.
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
 * Who may send a message.
 *
 * - `newcomer`: whoever begins a session.
 * - `principal`: one of the two parties.
 * - `participant`: they and every delegate that has accepted.
 * - `addressee`: the party on the other side of what is answered, or the one that it was addressed to.
 * - `deputy`: a delegate with full authority for the addressee.
 * - `representative`: a delegate with full authority, for what it opens itself.
 * - `author`: who opened what is referred to.
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

/** Where a message leads: a state, `stay`, or `return` to the state that was left by ESCALATE. */
export type Next = SessionState | "stay" | "return";

/** One line of the table. */
export interface Row {
  readonly performative: Performative;
  readonly subject: Subject;
  readonly by: readonly Actor[];
  /** By the state in which it is allowed. */
  readonly moves: ReadonlyMap<SessionState, Next>;
  /** The move is made only when both parties have sent such a message; until then the state stays. */
  readonly both: boolean;
  /** Allowed also when one party has closed. */
  readonly whenClosing: boolean;
}

const { IDLE, INVITED, INTRODUCED, CONVERSING, AGREEING, EXECUTING, CLOSED, ESCALATED, FAILED } =
  SessionState;
const { PROPOSE, ACCEPT, REJECT, COUNTER, INFORM, QUERY, CLARIFY } = Performative;
const { COMMIT, DELEGATE, ESCALATE, WITHDRAW, OBSERVE, CLOSE } = Performative;

/** The states in which the parties work; in each of them a message may leave the state as it is. */
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
 * The session machine: who may send what and when, and where it leads. (ASP specification "State machine", ASP
 * "Delegation chain") What has no line here is refused.
 *
 * Depute's choices, because the texts are silent: WITHDRAW of an invitation ends the session; an identity is an INFORM of
 * type `identity`, a decision of a higher authority one of type `resolution`; an accepted commitment is confirmed by
 * ACCEPT and contested by REJECT; binding messages stay with the two parties, so a delegate accepts proposals only.
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

/** The line for a message; undefined: such a message does not exist in any state. */
export function rowFor(performative: Performative, subject: Subject): Row | undefined {
  return byKey.get(`${performative}/${subject}`);
}
