import type { HandlerContext } from "@connectrpc/connect";
import type { Bus } from "@depute/bus";
import { type Agent, AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import type { AgentChangeKind } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import type { Clock, Timers } from "@depute/core";
import { DeputeError, ErrorReason } from "@depute/core";
import {
  type Authority,
  type BoundsOperators,
  type Identity,
  LOCAL_PRINCIPAL,
  mayActFor,
} from "@depute/service";
import type { ReadTx, Store, WriteTx } from "@depute/store";
import type { Authorities } from "./authorities.ts";
import type { CardKey } from "./card-key.ts";
import type { RemovalGuard } from "./removal-guard.ts";
import type { StoredAgent } from "./rules/agent.ts";
import type { Predicates } from "./rules/predicate.ts";
import type { SchemaChecker } from "./schema-checker.ts";
import { type AgentMemory, findVisible } from "./store/agents.ts";
import { appendChange, sameSight } from "./store/changes.ts";
import type { Viewer } from "./store/sight.ts";

/** What the handlers work with. */
export interface RegistryContext extends AgentMemory {
  readonly store: Store;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly authority: Authority;
  readonly schemas: SchemaChecker;
  /** The predicates of manifests, read. */
  readonly predicates: Predicates;
  /** By what time leases are judged. */
  readonly guard: RemovalGuard;
  readonly timers: Timers;
  /** Aborts when the process drains. */
  readonly stopping: AbortSignal;
  /** Entries of the log of changes that are kept. */
  readonly changesKept: number;
  /** Digits of a version hash. */
  readonly hashLength: number;
  /** The address under which clients know the platform. */
  readonly publicUrl: string;
  /** Whether also `local` has to bring a registration statement for an agent with a key. */
  readonly proofRequired: boolean;
  /** Whether CAP's orchestrator may delegate to every agent. */
  readonly orchestratorMay: boolean;
  /** Origins that registered addresses may have; none for every one. */
  readonly endpointOrigins: readonly string[];
  /** Who holds the authorities of agent URIs. */
  readonly authorities: Authorities;
  /** The key that signs agents' cards. */
  readonly cardKey: CardKey;
  /** Who may widen what bounds an agent. */
  readonly boundsOperators: BoundsOperators;
  /** Keys in base64url: their imports of trust count, and their callers prove organizations. */
  readonly trustOperators: readonly string[];
  /** Whether the caller without credentials proves organizations. */
  readonly localProves: boolean;
  /** Scores from which on the levels of trust 1, 2, 3, 4 begin. */
  readonly trustLevels: readonly number[];
  /** Principals that may ask in the orchestrator's name. */
  readonly orchestrators: readonly string[];
}

/** The topic of wake-ups after an agent or its capabilities changed; the key is the agent's id. */
export const AGENTS_TOPIC = "agents";

/**
 * Writes a change into the log, and wakes those who follow it once the transaction is durable.
 *
 * @param before the record that was replaced, where there was one
 */
export async function announce(
  { bus, clock, changesKept }: Pick<RegistryContext, "bus" | "clock" | "changesKept">,
  tx: WriteTx,
  kind: AgentChangeKind,
  agent: Agent,
  before?: Agent,
): Promise<void> {
  const moved = before === undefined || sameSight(before, agent) ? undefined : before;
  await appendChange(tx, { agentId: agent.id, kind, time: clock.now() }, moved, changesKept);
  tx.afterCommit(() => bus.publish(AGENTS_TOPIC, agent.id));
}

/**
 * Checks a presented credential also where a call needs none: a caller is held to what it presents.
 *
 * @throws DeputeError UNAUTHENTICATED, TOKEN_DENIED, DEPENDENCY_UNAVAILABLE
 */
export function identify({ authority }: RegistryContext, context: HandlerContext): Promise<Identity> {
  return authority.identify(context);
}

/**
 * By whose sight a call is answered: the caller's, or that of the principal that it names.
 *
 * @throws DeputeError CALLER_NOT_ALLOWED for another's sight
 */
export function viewerFor(identity: Identity, named: string): Viewer {
  if (named === "") return identity.local ? "all" : { principal: identity.principal };
  if (identity.local && named === LOCAL_PRINCIPAL) return "all";
  if (identity.local || named === identity.principal) return { principal: named };
  throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "only the platform may see for another", {
    violations: [{ field: "viewer", description: "is not the caller" }],
  });
}

/** @throws DeputeError CALLER_NOT_ALLOWED when the caller is not the agent's principal */
export function checkMayActFor(identity: Identity, principal: string, field: string): void {
  if (mayActFor(identity, principal)) return;
  throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "only the agent's own principal may do this", {
    violations: [{ field, description: "is not the caller's" }],
  });
}

/**
 * The caller's agent, which is not removed.
 *
 * @param field where the request names it
 * @throws DeputeError AGENT_NOT_FOUND, also for one that the caller does not see; CALLER_NOT_ALLOWED
 */
export async function findOwn(
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

export function agentNotFound(id: string): DeputeError {
  return new DeputeError(ErrorReason.AGENT_NOT_FOUND, `no agent ${id}`, { metadata: { agent: id } });
}
