import { SessionState } from "@depute/contracts/asp/v0/session_pb";
import { overdue, settle } from "./commitments.ts";
import { leave } from "./delegations.ts";
import { CLOSE_GRACE_MS, IDLE_TIMEOUT_MS } from "./limits.ts";
import { isTerminal, objectsOf, type Session, type SessionObject, withObject } from "./session.ts";

/** A point in time at which a session changes without a message, and the change. */
interface Deadline {
  readonly atMs: number;
  readonly apply: (session: Session) => Session;
}

/** Ends a session: returns it in a final state, with its open commitments settled. */
export function endSession(
  session: Session,
  state: SessionState,
  end: NonNullable<Session["end"]>,
  atMs: number,
): Session {
  const { returnsTo: _returnsTo, ...rest } = session;
  return { ...settle({ ...rest, state }), end, endMs: atMs };
}

function ending(session: Session): Deadline[] {
  const { expireMs, introduceMs, closingMs, updateMs, state } = session;
  const { FAILED, CLOSED, ESCALATED } = SessionState;
  const at = (atMs: number, to: SessionState, end: NonNullable<Session["end"]>): Deadline => ({
    atMs,
    apply: (before) => endSession(before, to, end, atMs),
  });
  return [
    at(expireMs, FAILED, "expired"),
    ...(state === SessionState.INVITED && introduceMs !== undefined
      ? [at(introduceMs, FAILED, "invitation_timeout")]
      : []),
    ...(closingMs === undefined ? [] : [at(closingMs + CLOSE_GRACE_MS, CLOSED, "close_grace")]),
    // The idle limit does not apply to an escalated session, which waits for a person.
    ...(state === ESCALATED ? [] : [at(updateMs + IDLE_TIMEOUT_MS, FAILED, "idle")]),
  ];
}

function lapse(session: Session, object: SessionObject, atMs: number): Session {
  const lapsed = withObject(session, { ...object, status: "expired" });
  if (object.kind === "invitation")
    return endSession(lapsed, SessionState.FAILED, "invitation_timeout", atMs);
  if (object.kind === "delegation" && object.target !== undefined) return leave(lapsed, object.target);
  if (object.kind === "commitment") return leaveAgreeing(lapsed);
  return lapsed;
}

/**
 * Replaces the state AGREEING by CONVERSING, because no object awaits agreement. A session that was escalated in
 * AGREEING will return to CONVERSING.
 */
function leaveAgreeing(session: Session): Session {
  if (session.state === SessionState.AGREEING) return { ...session, state: SessionState.CONVERSING };
  return session.returnsTo === SessionState.AGREEING
    ? { ...session, returnsTo: SessionState.CONVERSING }
    : session;
}

function deadlines(session: Session): Deadline[] {
  if (isTerminal(session.state) || session.state === SessionState.IDLE) return [];
  const lapses = objectsOf(session).flatMap((object) =>
    object.status === "open" && object.expireMs !== undefined
      ? [{ atMs: object.expireMs, apply: (before: Session) => lapse(before, object, object.expireMs ?? 0) }]
      : [],
  );
  const late = objectsOf(session, "commitment").flatMap((object) => {
    const open = object.status === "accepted" ? (object.obligations ?? []) : [];
    const dues = open.flatMap(({ status, dueMs }) =>
      status === "outstanding" && dueMs !== undefined ? [dueMs] : [],
    );
    if (dues.length === 0) return [];
    const atMs = Math.min(...dues);
    return [{ atMs, apply: (before: Session) => withObject(before, overdue(object, atMs)) }];
  });
  return [...lapses, ...late, ...ending(session)].sort((a, b) => a.atMs - b.atMs);
}

/**
 * Returns the time of the session's next deadline in epoch milliseconds; undefined before the first message and after
 * the session's end.
 */
export function nextDeadlineMs(session: Session): number | undefined {
  return deadlines(session)[0]?.atMs;
}

/**
 * Applies the deadlines that have passed, in order of time. One call or several calls have the same result, so every
 * reader of a transcript computes the same state.
 */
export function advance(session: Session, nowMs: number): Session {
  let current = session;
  // The loop ends, because each step closes an object, makes an obligation overdue or ends the session.
  for (
    let next = deadlines(current)[0];
    next !== undefined && next.atMs <= nowMs;
    next = deadlines(current)[0]
  ) {
    current = next.apply(current);
  }
  return current;
}
