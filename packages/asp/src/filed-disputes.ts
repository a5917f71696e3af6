import type { Dispute } from "@depute/contracts/asp/v0/dispute_pb";
import { type Refusal, Refused } from "./refusal.ts";
import { isPrincipal, objectOf, partyOf, type Session } from "./session.ts";

/** Limits of filed disputes: the maximum number in a session, and the maximum bytes of one in canonical JSON. */
export const MAX_FILED_DISPUTES = 100;
export const MAX_DISPUTE_BYTES = 65_536;

/**
 * Checks whether a party may file a dispute. The dispute must be between the two parties and about an accepted
 * commitment. The session may have ended, because an obligation may become due after the session's end.
 *
 * @returns the refusal; undefined if the dispute may be filed
 */
export function refusalOfDispute(session: Session, dispute: Dispute): Refusal | undefined {
  try {
    checkDispute(session, dispute);
    return undefined;
  } catch (thrown) {
    if (thrown instanceof Refused) return thrown.refusal;
    throw thrown;
  }
}

function checkDispute(session: Session, { sessionId, commitmentId, filedBy, filedAgainst }: Dispute): void {
  if (sessionId !== session.sessionId) {
    throw new Refused("wrong_session", "sessionId must be the session of the call");
  }
  const [by, against] = [partyOf(session, filedBy), partyOf(session, filedAgainst)];
  if (by === undefined || !isPrincipal(by)) {
    throw new Refused("wrong_party", "filedBy must be one of the two parties of the session");
  }
  if (against === undefined || !isPrincipal(against) || against.side === by.side) {
    throw new Refused("unknown_party", "filedAgainst must be the party on the other side");
  }
  const commitment = objectOf(session, commitmentId);
  if (commitment?.kind !== "commitment") {
    throw new Refused("unknown_reference", "commitmentId is not a commitment of the session");
  }
  if (commitment.status !== "accepted" && commitment.status !== "fulfilled") {
    throw new Refused(
      "reference_closed",
      "the commitment was not accepted, so it binds no party: file disputes only about accepted commitments",
    );
  }
}
