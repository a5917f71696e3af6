import {
  isTerminal,
  objectsOf,
  partyOf,
  type Session,
  type SessionObject,
  withObject,
  withParty,
} from "./session.ts";

const RUNNING = new Set(["open", "accepted", "reported"]);

/** Removes a delegate from the session, and all delegates that this delegate brought in, directly or indirectly. */
export function leave(session: Session, agentId: string): Session {
  let current = withParty(session, agentId, { presence: "left" });
  for (const object of objectsOf(current, "delegation")) {
    if (object.author !== agentId || object.target === undefined || !RUNNING.has(object.status)) continue;
    current = leave(withObject(current, { ...object, status: "withdrawn" }), object.target);
  }
  return current;
}

/**
 * The progress of delegated work.
 * - `asked`: the delegate has not answered.
 * - `going`: the delegate has accepted.
 * - `reported`: the delegate has sent its result.
 * - `over`: no result will follow, because the delegate refused, left or was dismissed, or the session has ended.
 */
export type WorkState = "asked" | "going" | "reported" | "over";

/** Returns the progress of the work that a delegation started. */
export function workOf(session: Session, delegation: SessionObject): WorkState {
  if (delegation.status === "reported" || delegation.result !== undefined) return "reported";
  if (isTerminal(session.state)) return "over";
  if (delegation.status === "open") return "asked";
  const isThere = partyOf(session, delegation.target ?? "")?.presence === "active";
  return delegation.status === "accepted" && isThere ? "going" : "over";
}
