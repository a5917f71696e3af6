import { type CallOptions, type Client, createClient, type Transport } from "@connectrpc/connect";
import { type AgentFacts, howFound, jwkThumbprint } from "@depute/asp";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { TrustService } from "@depute/contracts/depute/registry/v1/trust_service_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import { nativeEngine } from "@depute/dct/native";
import { fromConnectError } from "@depute/service";

/** A registered agent, as far as a session asks. */
export interface KnownAgent extends AgentFacts {
  /** Its URI. */
  readonly agentId: string;
  /** Its id in the registry. */
  readonly registryId: string;
  /** Who may speak for it: the principal of the key that signs its messages. */
  readonly principal: string;
  /** Its level of trust; 0 where nobody keeps one. */
  readonly level: number;
}

/**
 * Knows agents by their whole URIs, which their cards name. An agent's messages are signed by the key that the card names,
 * else by its principal, which is the same key; its proofs are by the card's key for them, else by the same key as its
 * messages. That key is the agent's principal in sessions.
 */
export class Agents {
  readonly #agents: Client<typeof AgentService>;
  readonly #trust: Client<typeof TrustService>;

  constructor(registry: Transport) {
    this.#agents = createClient(AgentService, registry);
    this.#trust = createClient(TrustService, registry);
  }

  /**
   * @param viewer the principal that asks
   * @returns undefined for a URI that no registered card names, or whose agent is hidden from the viewer, is removed, or has
   * a key that does not hold the URI's authority
   * @throws DeputeError DEPENDENCY_UNAVAILABLE
   */
  async find(uri: string, viewer: string, options: CallOptions): Promise<KnownAgent | undefined> {
    const found = await this.#agents.getAgentByUri({ uri, viewer }, options).catch(undefinedUnlessKnown);
    const agent = found?.agent;
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

/** A score as messages state it, with one decimal: the registry's may have more digits than anybody would copy. */
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
