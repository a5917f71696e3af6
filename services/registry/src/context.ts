import type { HandlerContext } from "@connectrpc/connect";
import type { Bus } from "@depute/bus";
import { type Agent, AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import type { AgentChangeKind } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { type Clock, DeputeError, ErrorReason, type Timers } from "@depute/core";
import {
  type Authority,
  type BoundsOperators,
  hasRole,
  type Identity,
  LOCAL_PRINCIPAL,
  mayActFor,
} from "@depute/service";
import type { ReadTx, Store, WriteTx } from "@depute/store";
import type { Authorities } from "./authorities.ts";
import type { CardKey } from "./card-key.ts";
import type { RemovalGuard } from "./removal-guard.ts";
import type { StoredAgent, Viewer } from "./rules/agent.ts";
import type { Predicates } from "./rules/predicate.ts";
import type { Grantors } from "./rules/proposal.ts";
import type { SchemaChecker } from "./schema-checker.ts";
import type { SignedCards } from "./signed-cards.ts";
import { type AgentMemory, findVisible } from "./store/agents.ts";
import { appendChange, hasSameVisibility } from "./store/changes.ts";

/** The dependencies and settings of the handlers. */
export interface RegistryContext extends AgentMemory {
  readonly store: Store;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly authority: Authority;
  readonly schemas: SchemaChecker;
  /** The cache of compiled predicates. */
  readonly predicates: Predicates;
  /**
   * Supplies the reference time of liveness checks. While many leases expire at once, this time does not advance, so
   * that agents stay discoverable.
   */
  readonly guard: RemovalGuard;
  readonly timers: Timers;
  /** Aborts when the process drains. */
  readonly stopping: AbortSignal;
  /** Maximum number of entries in the change log. */
  readonly changesKept: number;
  /** Number of digits of a version hash. */
  readonly hashLength: number;
  /** The platform's public URL. */
  readonly publicUrl: string;
  /** Whether callers must present credentials. */
  readonly needsCredentials: boolean;
  /** Whether the platform calls webhooks of A2A clients. */
  readonly callsWebhooks: boolean;
  /** Whether the caller `local` also needs a registration statement to register an agent with a key. */
  readonly proofRequired: boolean;
  /** Whether CAP's orchestrator may delegate to every agent. */
  readonly orchestratorMay: boolean;
  /** The origins that registered URLs may have; an empty list allows all. */
  readonly endpointOrigins: readonly string[];
  /** Manages the authorities of agent URIs and their grants. */
  readonly authorities: Authorities;
  /** The key that signs agents' cards. */
  readonly cardKey: CardKey;
  readonly signedCards: SignedCards;
  /** The principals that may widen the bounds of agents. */
  readonly boundsOperators: BoundsOperators;
  /**
   * Keys of operators, in base64url. The registry accepts imports of trust and proofs of organizations from these keys.
   */
  readonly trustOperators: readonly string[];
  /** Whether a caller without credentials on an open loopback may create proofs of organizations. */
  readonly localProves: boolean;
  /** The four minimum scores of the trust levels 1, 2, 3 and 4. */
  readonly trustLevels: readonly number[];
  /** The settings of proposals. */
  readonly proposals: ProposalSettings;
  /** Principals that may act as CAP's orchestrator. */
  readonly orchestrators: readonly string[];
}

/** The settings and functions for the handlers of proposals. */
export interface ProposalSettings {
  /** Milliseconds until a proposal without a decision expires. */
  readonly timeoutMs: number;
  readonly grantors: Grantors;
  /** Starts the delivery of the calls to the verifier service that are recorded for proposals. */
  wake(): void;
}

/** The bus topic that reports changed agents and capabilities. The key is the agent's id. */
export const AGENTS_TOPIC = "agents";

/**
 * Appends a change to the log, and wakes watchers after the commit.
 *
 * @param before the record before a change that may alter the visibility; otherwise undefined
 */
export async function recordChange(
  { bus, clock, changesKept }: Pick<RegistryContext, "bus" | "clock" | "changesKept">,
  tx: WriteTx,
  kind: AgentChangeKind,
  agent: Agent,
  before?: Agent,
): Promise<void> {
  const moved = before === undefined || hasSameVisibility(before, agent) ? undefined : before;
  await appendChange(tx, { agentId: agent.id, kind, time: clock.now() }, moved, changesKept);
  tx.afterCommit(() => bus.publish(AGENTS_TOPIC, agent.id));
}

/**
 * Identifies the caller, even in calls that need no credentials. Invalid credentials are refused in these calls too.
 *
 * @throws DeputeError UNAUTHENTICATED, TOKEN_DENIED, DEPENDENCY_UNAVAILABLE
 */
export function identify({ authority }: RegistryContext, context: HandlerContext): Promise<Identity> {
  return authority.identify(context);
}

/**
 * Returns the viewer of a call: the principal in the request or, if the request has none, the caller. `local` sees
 * every agent.
 *
 * @throws DeputeError CALLER_NOT_ALLOWED when the request names a principal other than the caller; only `local` may
 * name any principal
 */
export function viewerFor(identity: Identity, requestedViewer: string): Viewer {
  if (requestedViewer === "") return identity.local ? "all" : { principal: identity.principal };
  if (identity.local && requestedViewer === LOCAL_PRINCIPAL) return "all";
  if (identity.local || requestedViewer === identity.principal) return { principal: requestedViewer };
  throw new DeputeError(
    ErrorReason.CALLER_NOT_ALLOWED,
    "only the platform may name another viewer; leave the field empty",
    {
      violations: [{ field: "viewer", description: "is not the caller" }],
    },
  );
}

/**
 * Requires that the caller may act for a principal.
 *
 * @throws DeputeError CALLER_NOT_ALLOWED
 */
export function checkMayActFor(identity: Identity, principal: string, field: string): void {
  if (mayActFor(identity, principal)) return;
  throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "only the agent's principal may make this call", {
    violations: [{ field, description: "is not the caller's" }],
  });
}

/**
 * Finds an agent that is not removed, and for whose principal the caller may act.
 *
 * @param field the field of the id in the request
 * @throws DeputeError AGENT_NOT_FOUND, also for an agent that the caller may not see; CALLER_NOT_ALLOWED
 */
export async function findCallersAgent(
  tx: ReadTx,
  identity: Identity,
  id: string,
  field: string,
): Promise<StoredAgent> {
  const agent = await findVisible(tx, id, viewerFor(identity, ""));
  if (agent === undefined || agent.status === AgentStatus.REMOVED) throw agentNotFound(id);
  checkMayActFor(identity, agent.record.principal, field);
  return agent;
}

/**
 * Finds an agent for a call that removes the agent, changes its status or withdraws its offers. The caller must be
 * allowed to act for the agent's principal, or be an operator. Removed agents are found too.
 *
 * @param field the field of the id in the request
 * @throws DeputeError AGENT_NOT_FOUND, also for an agent that the caller may not see; CALLER_NOT_ALLOWED
 */
export async function findAgentToEnd(
  tx: ReadTx,
  identity: Identity,
  id: string,
  field: string,
): Promise<StoredAgent> {
  const isOperator = hasRole(identity, "operator");
  const agent = await findVisible(tx, id, isOperator ? "all" : viewerFor(identity, ""));
  if (agent === undefined) throw agentNotFound(id);
  if (!isOperator) checkMayActFor(identity, agent.record.principal, field);
  return agent;
}

export function agentNotFound(id: string): DeputeError {
  return new DeputeError(
    ErrorReason.AGENT_NOT_FOUND,
    `the agent ${id} does not exist, is not live, or is not visible to the caller; check the id`,
    { metadata: { agent: id } },
  );
}
