import { type Row, TABLE } from "@depute/asp";
import { SessionState } from "@depute/contracts/asp/v0/session_pb";
import type { Tone } from "./task-status.ts";

const { IDLE, INVITED, INTRODUCED, CONVERSING, AGREEING, EXECUTING, CLOSED, ESCALATED, FAILED } =
  SessionState;

/** The column and row of each state in the diagram. Row 0 has all states but FAILED and ESCALATED. */
export const STATE_PLACES: ReadonlyMap<SessionState, readonly [column: number, row: number]> = new Map([
  [IDLE, [0, 0]],
  [INVITED, [1, 0]],
  [INTRODUCED, [2, 0]],
  [CONVERSING, [3, 0]],
  [AGREEING, [4, 0]],
  [EXECUTING, [5, 0]],
  [CLOSED, [6, 0]],
  [FAILED, [1, 1]],
  [ESCALATED, [4, 1]],
]);

/** A line of the state diagram, from one state to another. */
export interface StateLine {
  readonly from: SessionState;
  readonly to: SessionState;
  /** Whether a session may also go from `to` back to `from`. */
  readonly isMutual: boolean;
}

/** Returns the lines of the diagram: one for each pair of states, if ASP's table allows a transition between them. */
export function stateLines(table: readonly Row[] = TABLE): StateLine[] {
  const pairs = new Map(table.flatMap(pairsOf).map((pair) => [pair.join(" "), pair]));
  const lines = new Map<string, StateLine>();
  for (const [from, to] of pairs.values()) {
    if (lines.has(`${to} ${from}`)) continue;
    lines.set(`${from} ${to}`, { from, to, isMutual: pairs.has(`${to} ${from}`) });
  }
  return [...lines.values()];
}

/**
 * Returns the pairs of states in one row of the table. A transition to ESCALATED also adds the pair for the return from
 * ESCALATED.
 */
function pairsOf({ moves }: Row): (readonly [SessionState, SessionState])[] {
  return [...moves].flatMap(([from, next]): (readonly [SessionState, SessionState])[] => {
    if (next === "stay" || next === "return") return [];
    return next === ESCALATED
      ? [
          [from, next],
          [next, from],
        ]
      : [[from, next]];
  });
}

/** The state of a session after one message, or after a deadline. */
export interface SessionStep {
  readonly state: SessionState;
  /** The position of the message in the session, from 1; 0 if the state changed because of a deadline. */
  readonly ordinal: number;
  /** The agent that sent the message; empty if the state changed because of a deadline. */
  readonly sender: string;
}

/** A transition that a session made. */
export interface SessionMove extends SessionStep {
  readonly from: SessionState;
}

/**
 * Returns the transitions of a session, in order.
 *
 * @param steps the state after each message; before the first message the state is IDLE
 */
export function sessionMoves(steps: readonly SessionStep[]): SessionMove[] {
  return steps.flatMap((step, index) => {
    const from = steps[index - 1]?.state ?? (step.ordinal === 1 ? IDLE : step.state);
    return from === step.state ? [] : [{ ...step, from }];
  });
}

/** Whether a session in this state has ended, so that no message follows. */
export function hasSessionEnded(state: SessionState): boolean {
  return state === CLOSED || state === FAILED;
}

export function sessionTone(state: SessionState): Tone {
  if (state === CLOSED) return "good";
  if (state === FAILED) return "bad";
  return state === ESCALATED ? "waiting" : "active";
}
