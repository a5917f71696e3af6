import { DelegationAuthority } from "@depute/contracts/asp/v0/asp_common_pb";
import { Refused } from "./refusal.ts";
import { isPrincipal, type Party, partyOf, type Session, type SessionObject } from "./session.ts";
import type { Actor, Row } from "./table.ts";

/** Whether a party is a delegate that may decide for the party that added the delegate to the session. */
export function isRepresentative(party: Party): boolean {
  return !isPrincipal(party) && party.authority === DelegationAuthority.FULL;
}

/** Whether the party is on the side that must answer an object. */
function isAnswering(session: Session, party: Party, object: SessionObject | undefined): boolean {
  if (object === undefined) return false;
  const sideOf = (agentId: string) => partyOf(session, agentId)?.side;
  if (party.side === sideOf(object.author)) return false;
  return object.addressee === undefined || party.side === sideOf(object.addressee);
}

function is(actor: Actor, session: Session, party: Party, object: SessionObject | undefined): boolean {
  switch (actor) {
    case "newcomer":
      return false;
    case "principal":
      return isPrincipal(party);
    case "participant":
      return true;
    case "addressee":
      return isPrincipal(party) && isAnswering(session, party, object);
    case "deputy":
      return isRepresentative(party) && isAnswering(session, party, object);
    case "representative":
      return isRepresentative(party);
    case "author":
      return object?.author === party.agentId;
    case "target":
      return object?.target === party.agentId;
  }
}

/**
 * Checks that a party may send a message, according to the message's row in ASP's table of transitions.
 *
 * @throws Refused wrong_party, authority_exceeded, not_a_participant
 */
export function requireActor(
  session: Session,
  party: Party,
  row: Row,
  object: SessionObject | undefined,
): void {
  const { subject, by } = row;
  if (party.presence === "invited" && subject !== "invitation" && subject !== "delegation") {
    throw new Refused("not_a_participant", "the first message of an invited agent must be ACCEPT");
  }
  if (by.some((actor) => is(actor, session, party, object))) return;
  // No role of the sender allows the message. The code for a delegate is authority_exceeded, unless only a
  // delegation's target may send the message. The code is wrong_party in every other case.
  if (!isPrincipal(party) && !by.includes("target")) {
    throw new Refused(
      "authority_exceeded",
      "the delegation does not grant the authority for this message: the delegate's principal must send it",
    );
  }
  throw new Refused("wrong_party", "the sender's role may not send this message: another party must send it");
}
