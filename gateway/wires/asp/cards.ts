import { create } from "@bufbuild/protobuf";
import type { CallOptions } from "@connectrpc/connect";
import { type AgentCard, AgentCardSchema } from "@depute/contracts/asp/v0/agent_card_pb";
import { type Agent, AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import { DeputeError, ErrorReason, invalid } from "@depute/core";
import type { Clients } from "../../edge/clients.ts";
import { refusalIn } from "../../edge/fault.ts";
import type { WireCall } from "../../edge/wire-call.ts";

/** Maximum number of agents that the gateway reads from the registry for one discovery. */
const MAX_SCANNED = 1000;
/** Maximum number of cards in one answer. */
const MAX_LISTED = 100;
/** The highest trust level. A `min_trust` up to this number is a level; a greater number is a score. */
const MAX_LEVEL = 4;

/**
 * Finds the cards of agents that support ASP, offer a capability and have enough trust. (ASP transports "HTTP/SSE",
 * `discover`) As in sessions, an agent is hidden if its key may not act for the authority in its URI. ASP describes
 * `min_trust` as a level ("a minimum trust level of 3"), but uses the same number for scores. So Depute reads 0 to 4 as
 * a level, and a greater number as a score.
 *
 * @throws DeputeError INVALID_REQUEST
 */
export async function discoverCards(
  clients: Clients,
  query: URLSearchParams,
  call: WireCall,
): Promise<AgentCard[]> {
  const capability = query.get("capability") ?? "";
  const minTrust = Number(query.get("min_trust") ?? "0");
  if (!(minTrust >= 0 && minTrust <= 100))
    throw invalid("min_trust", "must be a level from 0 to 4 or a score up to 100");
  const { agents } = await clients.agents.listAgents({ pageSize: MAX_SCANNED }, call.asCaller);
  const offering = agents.filter(
    ({ card, status }) =>
      status === AgentStatus.ACTIVE &&
      card !== undefined &&
      (capability === "" || card.capabilities?.values.includes(capability) === true),
  );
  const cards = await Promise.all(
    offering.slice(0, MAX_LISTED).map(async (agent) => {
      const agentOfCard = await agentOfUri(clients, agent.card?.agentId ?? "", call.aside);
      return agentOfCard?.id === agent.id ? withTrust(clients, agent, call.aside) : undefined;
    }),
  );
  const isTrusted = ({ trustScore = 0, trustLevel = 0 }: AgentCard) =>
    minTrust <= MAX_LEVEL ? trustLevel >= minTrust : trustScore >= minTrust;
  return cards.filter((card) => card !== undefined).filter(isTrusted);
}

/**
 * Returns the card of an agent. The caller names the agent by its URI or by its id in the registry.
 *
 * @throws DeputeError AGENT_NOT_FOUND
 */
export async function cardOf(clients: Clients, agentRef: string, call: WireCall): Promise<AgentCard> {
  const { agent } = agentRef.startsWith(SCHEME)
    ? await clients.agents.getAgentByUri({ uri: agentRef }, call.asCaller)
    : await clients.agents.getAgent({ agentId: agentRef }, call.asCaller);
  const card = agent === undefined ? undefined : await withTrust(clients, agent, call.aside);
  if (card === undefined || agent?.status === AgentStatus.REMOVED) {
    throw new DeputeError(ErrorReason.AGENT_NOT_FOUND, "the agent does not exist, or has no card", {
      metadata: { agent: agentRef },
    });
  }
  return card;
}

/** Finds the agent of a URI, by the same rules as for sessions. Returns undefined if no agent has the URI. */
export async function agentOfUri(
  { agents }: Clients,
  uri: string,
  options: CallOptions,
): Promise<Agent | undefined> {
  try {
    return (await agents.getAgentByUri({ uri }, options)).agent;
  } catch (thrown) {
    if (refusalIn(thrown).reason === ErrorReason.AGENT_NOT_FOUND) return undefined;
    throw thrown;
  }
}

const SCHEME = "agent://";

/**
 * Returns the agent's card with the platform's trust score instead of the score that the agent states; undefined if the
 * agent has no card.
 */
async function withTrust(
  { trust }: Clients,
  { id, card }: Agent,
  options: CallOptions,
): Promise<AgentCard | undefined> {
  if (card === undefined) return undefined;
  const { overall } = await trust.getTrust({ agentId: id }, options);
  const { trustScore: _score, trustLevel: _level, trustComponents: _components, ...own } = card;
  return create(AgentCardSchema, {
    ...own,
    ...(overall === undefined
      ? {}
      : {
          trustScore: Math.round(overall.score * 10) / 10,
          trustLevel: overall.level,
          ...(overall.components === undefined ? {} : { trustComponents: overall.components }),
        }),
  });
}
