import { DelegationAuthority } from "@depute/contracts/asp/v0/common_pb";
import { Refused } from "./refusal.ts";
import { isPrincipal, type Party, partyOf, type Session, type SessionObject } from "./session.ts";
import type { Actor, Row } from "./table.ts";

/** Whether a delegate may decide in place of who brought it in. */
export function isRepresentative(party: Party): boolean {
  return !isPrincipal(party) && party.authority === DelegationAuthority.FULL;
}

/** Whether it is this party's side that has to answer an object. */
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
 * Whether a party may send what a line of the table says.
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
    throw new Refused("not_a_participant", "who is invited has to accept first");
  }
  if (by.some((actor) => is(actor, session, party, object))) return;
  // A delegate that lacks the authority hears so; who is on the wrong side of an object hears that.
  if (!isPrincipal(party) && !by.includes("target")) {
    throw new Refused("authority_exceeded", "the delegation does not go so far");
  }
  throw new Refused("wrong_party", "this party may not send this message");
}
