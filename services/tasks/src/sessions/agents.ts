import { type CallOptions, type Client, createClient, type Transport } from "@connectrpc/connect";
import { type AgentFacts, jwkThumbprint } from "@depute/asp";
import { AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { TrustService } from "@depute/contracts/depute/registry/v1/trust_service_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import { nativeEngine } from "@depute/dct/native";
import { fromConnectError } from "@depute/service";

/** A registered agent, as far as a session asks. */
export interface KnownAgent extends AgentFacts {
  readonly agentId: string;
  /** Who may speak for it. */
  readonly principal: string;
  /** Its level of trust; 0 where nobody keeps one. */
  readonly level: number;
}

/**
 * Knows agents by their URIs: the last part is the id under which the registry has the agent, and where its card names a
 * URI it has to be this one. Its messages are signed by the key that the card names, else by its principal; its proofs are
 * by the card's key for them, else by the same key as its messages.
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
   * @returns undefined for an agent that is not registered, is hidden from the viewer, is removed, or has no key
   * @throws DeputeError DEPENDENCY_UNAVAILABLE
   */
  async find(uri: string, viewer: string, options: CallOptions): Promise<KnownAgent | undefined> {
    const id = registeredId(uri);
    const found = await this.#agents.getAgent({ id, viewer }, options).catch(undefinedUnlessKnown);
    const agent = found?.agent;
    if (agent === undefined || agent.status === AgentStatus.REMOVED) return undefined;
    if (agent.card !== undefined && agent.card.agentId !== uri) return undefined;
    const key = agent.card?.signingPublicKey?.x ?? agent.principal;
    if (key === "") return undefined;
    const proofKey = agent.card?.dpopPublicKey;
    const conformance = agent.card?.conformanceLevel;
    const trust = await this.#trust
      .getTrust({ agentId: id }, options)
      .then(({ overall }) => overall, undefinedUnlessKnown);
    return {
      agentId: uri,
      principal: agent.principal,
      key,
      ...(proofKey === undefined ? {} : { proofThumbprint: jwkThumbprint(nativeEngine, proofKey) }),
      ...(conformance === undefined ? {} : { conformance }),
      level: trust?.level ?? 0,
      ...(trust === undefined ? {} : { trustScore: stated(trust.score) }),
    };
  }
}

/** The id under which the registry has the agent of a URI. */
export function registeredId(uri: string): string {
  return uri.slice(uri.lastIndexOf("/") + 1);
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
  return new DeputeError(ErrorReason.AGENT_NOT_FOUND, "no such agent", { metadata: { agent: agentId } });
}
