import { objectsOf, type Session, withObject, withParty } from "./session.ts";

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

/** A report of a delegate: who can vouch for it, and where it stands. (ASP "Cross-Session References") */
export interface Evidence {
  readonly sessionId: string;
  readonly delegationId: string;
  /** The agent that reported. */
  readonly verifier: string;
  readonly messageId: string;
  readonly ordinal: number;
  readonly hash: string;
  /** When, as the message says, ISO 8601. */
  readonly timestamp: string;
}

/** What the delegates of a session have reported: with the transcript it can be shown elsewhere. */
export function evidenceOf(session: Session): Evidence[] {
  return objectsOf(session, "delegation").flatMap(({ id, target, result }) =>
    result === undefined || target === undefined
      ? []
      : [{ sessionId: session.sessionId, delegationId: id, verifier: target, ...result }],
  );
}
