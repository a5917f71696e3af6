import { create } from "@bufbuild/protobuf";
import type { CallOptions } from "@connectrpc/connect";
import { type AgentCard, AgentCardSchema } from "@depute/contracts/asp/v0/agent_card_pb";
import { type Agent, AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import { DeputeError, ErrorReason, invalid } from "@depute/core";
import type { Clients } from "../../src/clients.ts";
import { refusalIn } from "../../src/fault.ts";
import type { WireCall } from "../../src/wire-call.ts";

/** Agents looked at for one discovery; a filter of the registry's own narrows what is many. */
const MAX_SCANNED = 1000;
/** Cards in one answer. */
const MAX_LISTED = 100;
/** The highest level of trust: a `min_trust` up to it is a level, one above it a score. */
const MAX_LEVEL = 4;

/**
 * The cards of agents that speak ASP and offer a capability, trusted enough. (ASP transports "HTTP/SSE", `discover`) An agent
 * whose key does not hold the authority of its URI is not found, as in sessions.
 *
 * The text asks for a level ("a minimum trust level of 3") and the page has one number for it, so 0 to 4 is a level and
 * what is above a score.
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
    throw invalid("min_trust", "is a level of 0 to 4 or a score up to 100");
  const { agents } = await clients.agents.listAgents({ pageSize: MAX_SCANNED }, call.asCaller);
  const offering = agents.filter(
    ({ card, status }) =>
      status === AgentStatus.ACTIVE &&
      card !== undefined &&
      (capability === "" || card.capabilities?.values.includes(capability) === true),
  );
  const cards = await Promise.all(
    offering.slice(0, MAX_LISTED).map(async (agent) => {
      const found = await agentOfUri(clients, agent.card?.agentId ?? "", call.aside);
      return found?.id === agent.id ? withTrust(clients, agent, call.aside) : undefined;
    }),
  );
  const isTrusted = ({ trustScore = 0, trustLevel = 0 }: AgentCard) =>
    minTrust <= MAX_LEVEL ? trustLevel >= minTrust : trustScore >= minTrust;
  return cards.filter((card) => card !== undefined).filter(isTrusted);
}

/**
 * The card of an agent, by its URI or by the id that the registry has it under.
 *
 * @throws DeputeError AGENT_NOT_FOUND
 */
export async function cardOf(clients: Clients, named: string, call: WireCall): Promise<AgentCard> {
  const { agent } = named.startsWith(SCHEME)
    ? await clients.agents.getAgentByUri({ uri: named }, call.asCaller)
    : await clients.agents.getAgent({ id: named }, call.asCaller);
  const card = agent === undefined ? undefined : await withTrust(clients, agent, call.aside);
  if (card === undefined || agent?.status === AgentStatus.REMOVED) {
    throw new DeputeError(ErrorReason.AGENT_NOT_FOUND, "no such agent with a card", {
      metadata: { agent: named },
    });
  }
  return card;
}

/** The agent that sessions find by a URI; undefined where there is none. */
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

/** The card with what the platform knows of the agent's trust: what the agent says of it itself does not count. */
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
