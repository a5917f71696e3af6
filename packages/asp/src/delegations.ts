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

/** An agent that was brought in leaves, and with it everyone that it brought in itself. */
export function leave(session: Session, agentId: string): Session {
  let current = withParty(session, agentId, { presence: "left" });
  for (const object of objectsOf(current, "delegation")) {
    if (object.author !== agentId || object.target === undefined || !RUNNING.has(object.status)) continue;
    current = leave(withObject(current, { ...object, status: "withdrawn" }), object.target);
  }
  return current;
}

/**
 * How delegated work stands. `asked`: the delegate has not answered. `going`: it has accepted. `reported`: it has told what it
 * found. `over`: it will not, because it refused or left, was sent away, or the session has ended.
 */
export type WorkState = "asked" | "going" | "reported" | "over";

/** How the work of a delegation stands. */
export function workOf(session: Session, delegation: SessionObject): WorkState {
  if (delegation.status === "reported" || delegation.result !== undefined) return "reported";
  if (isTerminal(session.state)) return "over";
  if (delegation.status === "open") return "asked";
  const isThere = partyOf(session, delegation.target ?? "")?.presence === "active";
  return delegation.status === "accepted" && isThere ? "going" : "over";
}
