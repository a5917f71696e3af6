import { type CallOptions, type Client, createClient, type Transport } from "@connectrpc/connect";
import { type AgentFacts, howFound, jwkThumbprint } from "@depute/asp";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { TrustService } from "@depute/contracts/depute/registry/v1/trust_service_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import { nativeEngine } from "@depute/dct/native";
import { fromConnectError } from "@depute/service";

/** The facts about a registered agent for the rules of a session. */
export interface KnownAgent extends AgentFacts {
  /** The agent's URI. */
  readonly agentId: string;
  /** The agent's id in the registry. */
  readonly registryId: string;
  /** The principal of the key that signs the agent's messages. */
  readonly principal: string;
  /** The agent's level of trust; 0 if the level is unknown. */
  readonly level: number;
}

/**
 * Finds agents by the URIs on their cards. A card's signing key signs the agent's messages, and is the agent's
 * principal in sessions. A card's proof key signs proofs. If a card has no proof key, its signing key also signs
 * proofs.
 */
export class Agents {
  readonly #agents: Client<typeof AgentService>;
  readonly #trust: Client<typeof TrustService>;

  constructor(registry: Transport) {
    this.#agents = createClient(AgentService, registry);
    this.#trust = createClient(TrustService, registry);
  }

  /**
   * Finds an agent by the URI on its card.
   *
   * @param viewer the caller's principal
   * @returns undefined for a URI for which the registry shows the viewer no agent, and for an agent without a card or a
   * key
   * @throws DeputeError if the registry fails, e.g. DEPENDENCY_UNAVAILABLE
   */
  async find(uri: string, viewer: string, options: CallOptions): Promise<KnownAgent | undefined> {
    const foundAgent = await this.#agents.getAgentByUri({ uri, viewer }, options).catch(undefinedUnlessKnown);
    const agent = foundAgent?.agent;
    const key = agent?.card?.signingPublicKey?.x ?? agent?.principal ?? "";
    if (agent?.card === undefined || key === "") return undefined;
    const { id, card } = agent;
    const { dpopPublicKey: proofKey, conformanceLevel: conformance } = card;
    const trust = await this.#trust
      .getTrust({ agentId: id }, options)
      .then(({ overall }) => overall, undefinedUnlessKnown);
    return {
      agentId: uri,
      registryId: id,
      principal: key,
      key,
      ...(proofKey === undefined ? {} : { proofThumbprint: jwkThumbprint(nativeEngine, proofKey) }),
      ...(conformance === undefined ? {} : { conformance }),
      level: trust?.level ?? 0,
      ...(trust === undefined ? {} : { trustScore: stated(trust.score) }),
    };
  }
}

/** Rounds a score to one decimal, as messages state scores. */
function stated(score: number): number {
  return Math.round(score * 10) / 10;
}

const UNKNOWN: ReadonlySet<ErrorReason> = new Set([
  ErrorReason.AGENT_NOT_FOUND,
  ErrorReason.INVALID_REQUEST,
  ErrorReason.UNKNOWN_METHOD,
]);

function undefinedUnlessKnown(thrown: unknown): undefined {
  const refusal = fromConnectError(thrown);
  if (!UNKNOWN.has(refusal.reason)) throw refusal;
  return undefined;
}

export function agentNotFound(agentId: string): DeputeError {
  return new DeputeError(ErrorReason.AGENT_NOT_FOUND, howFound(agentId), { metadata: { agent: agentId } });
}
