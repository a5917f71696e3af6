import type { AgentFacts, AppendContext } from "./context.ts";
import { MAX_PARTIES } from "./limits.ts";
import { Refused } from "./refusal.ts";
import { type Party, partyOf, type Session } from "./session.ts";

/**
 * Adds an agent with its current key and score, which stay fixed for the session. A party that left may rejoin and
 * continues its sequence. A principal can be only one party, even under several URIs, because a principal is identified
 * by its key.
 *
 * @throws Refused unknown_agent, same_principal, already_participant, limit_exceeded
 */
export function addParty(
  session: Session,
  context: Pick<AppendContext, "agent">,
  party: Omit<Party, keyof AgentFacts | "nextSequence" | "closed">,
): Session {
  const before = partyOf(session, party.agentId);
  if (before !== undefined && (before.presence !== "left" || before.role !== party.role)) {
    throw new Refused("already_participant", "the agent is already a participant");
  }
  if (before === undefined && session.parties.length >= MAX_PARTIES) {
    throw new Refused("limit_exceeded", `a session has at most ${MAX_PARTIES} participants`, {
      limit: "session.parties",
      max: MAX_PARTIES,
    });
  }
  const facts = context.agent(party.agentId);
  if (facts === undefined) throw new Refused("unknown_agent", howFound(party.agentId));
  const { key, proofThumbprint, orgId, trustScore, conformance } = before ?? facts;
  const same = session.parties.find((other) => other.agentId !== party.agentId && other.key === key);
  if (same !== undefined) {
    throw new Refused(
      "same_principal",
      `${party.agentId} has the key of ${same.agentId}, and a principal can be only one party`,
    );
  }
  const joined: Party = {
    ...party,
    key,
    nextSequence: before?.nextSequence ?? 0,
    closed: false,
    ...(proofThumbprint === undefined ? {} : { proofThumbprint }),
    ...(orgId === undefined ? {} : { orgId }),
    ...(trustScore === undefined ? {} : { trustScore }),
    ...(conformance === undefined ? {} : { conformance }),
  };
  const others = session.parties.filter(({ agentId }) => agentId !== party.agentId);
  return { ...session, parties: before === undefined ? [...others, joined] : replace(session, joined) };
}

/** Returns a text on how to register an agent so that it can take part in sessions. */
export function howFound(uri: string): string {
  return `no registered agent has the URI ${uri}: register the agent with a card whose agentId is its URI, and with a key (its principal, or signingPublicKey of the card) that holds the URI's authority`;
}

function replace({ parties }: Session, joined: Party): Party[] {
  return parties.map((party) => (party.agentId === joined.agentId ? joined : party));
}
