import type { CallOptions, Client, HandlerContext } from "@connectrpc/connect";
import { AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import type { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { type Clock, DeputeError, ErrorReason } from "@depute/core";
import { type Authority, fromConnectError, type Identity, mayActFor, ownOptions } from "@depute/service";
import { DELEGATE_RIGHT } from "../../core/index.ts";
import { isRole, ORCHESTRATOR, type Participant, PLATFORM, USER } from "../rules/participant.ts";

export interface ParticipantsOptions {
  readonly authority: Authority;
  readonly agents: Client<typeof AgentService>;
  readonly clock: Clock;
  /** Principals that may act as `user`. */
  readonly users: readonly string[];
  /** Principals that may act as `orchestrator`. */
  readonly orchestrators: readonly string[];
}

/** Finds participants, and decides which callers may act for them. */
export class Participants {
  readonly #options: ParticipantsOptions;

  constructor(options: ParticipantsOptions) {
    this.#options = options;
  }

  /**
   * Identifies the caller. If the call delegates and the caller has a token, the token must allow delegation to
   * `delegateTo`.
   *
   * @throws DeputeError the errors of Authority.identify; with `delegateTo`, the errors of Authority.authorise
   */
  identify(context: HandlerContext, delegateTo?: string): Promise<Identity> {
    const { authority } = this.#options;
    if (delegateTo === undefined) return authority.identify(context);
    return authority.authorise(context, { ...DELEGATE_RIGHT, resource: `${delegateTo}/-` });
  }

  /**
   * Returns the participant for which the caller acts. CAP has no authentication. Depute's choice: for an agent, the
   * caller must be the agent's registered principal; for a role, the settings list the principals.
   *
   * @throws DeputeError AGENT_NOT_FOUND, CALLER_NOT_ALLOWED, DEPENDENCY_UNAVAILABLE
   */
  async self(id: string, identity: Identity, context: HandlerContext): Promise<Participant> {
    if (isRole(id)) {
      if (identity.local || this.#mayBe(id, identity)) {
        return { id, principal: identity.principal, manifest: undefined };
      }
      throw notTheirs(id);
    }
    const foundAgent = await this.#agent(id, identity.principal, ownOptions(context, this.#options.clock));
    if (foundAgent === undefined) throw participantNotFound(id);
    if (!mayActFor(identity, foundAgent.principal)) throw notTheirs(id);
    return {
      ...foundAgent,
      principal: foundAgent.principal === "" ? identity.principal : foundAgent.principal,
    };
  }

  /**
   * Finds a participant that a viewer may see. With an empty viewer, finds every participant.
   *
   * @returns undefined for an unknown or hidden participant
   */
  async find(id: string, viewer: string, context: HandlerContext): Promise<Participant | undefined> {
    if (isRole(id)) return { id, principal: "", manifest: undefined };
    return this.#agent(id, viewer, ownOptions(context, this.#options.clock));
  }

  /** Returns the principals that may act in a role. */
  principalsOf(role: string): readonly string[] {
    if (role === USER) return this.#options.users;
    return role === ORCHESTRATOR ? this.#options.orchestrators : [];
  }

  #mayBe(role: string, identity: Identity): boolean {
    return this.principalsOf(role).some((principal) => mayActFor(identity, principal));
  }

  async #agent(id: string, viewer: string, options: CallOptions): Promise<Participant | undefined> {
    if (id === PLATFORM) return undefined;
    try {
      const { agent } = await this.#options.agents.getAgent({ agentId: id, viewer }, options);
      if (agent === undefined || agent.status === AgentStatus.REMOVED) return undefined;
      return { id: agent.id, principal: agent.principal, manifest: agent.manifest };
    } catch (thrown) {
      const refusal = fromConnectError(thrown);
      const isUnknown =
        refusal.reason === ErrorReason.AGENT_NOT_FOUND || refusal.reason === ErrorReason.INVALID_REQUEST;
      if (isUnknown) return undefined;
      throw refusal;
    }
  }
}

export function participantNotFound(id: string): DeputeError {
  return new DeputeError(
    ErrorReason.AGENT_NOT_FOUND,
    "the participant does not exist, or the caller may not see it",
    { metadata: { agent: id } },
  );
}

function notTheirs(id: string): DeputeError {
  return new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, `the caller may not act for ${id}`, {
    metadata: { agent: id },
  });
}
