import type { HandlerContext } from "@connectrpc/connect";
import type { Bus } from "@depute/bus";
import type { Clock } from "@depute/core";
import { DeputeError, ErrorReason } from "@depute/core";
import { type Authority, type Identity, mayActFor } from "@depute/service";
import type { Store, WriteTx } from "@depute/store";
import type { SchemaChecker } from "./schema-checker.ts";

/** What the handlers work with. */
export interface RegistryContext {
  readonly store: Store;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly authority: Authority;
  readonly schemas: SchemaChecker;
  /** Digits of a version hash. */
  readonly hashLength: number;
}

/** The topic of wake-ups after an agent or its capabilities changed; the key is the agent's id. */
export const AGENTS_TOPIC = "agents";

/** Wakes those who follow agents, once the transaction is durable. */
export function announce({ bus }: RegistryContext, tx: WriteTx, agentId: string): void {
  tx.afterCommit(() => bus.publish(AGENTS_TOPIC, agentId));
}

/**
 * Checks a presented credential also where a call needs none: a caller is held to what it presents.
 *
 * @throws DeputeError UNAUTHENTICATED, TOKEN_DENIED, DEPENDENCY_UNAVAILABLE
 */
export function identify({ authority }: RegistryContext, context: HandlerContext): Promise<Identity> {
  return authority.identify(context);
}

/** @throws DeputeError CALLER_NOT_ALLOWED when the caller is not the agent's principal */
export function checkMayActFor(identity: Identity, principal: string, field: string): void {
  if (mayActFor(identity, principal)) return;
  throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "only the agent's own principal may do this", {
    violations: [{ field, description: "is not the caller's" }],
  });
}

export function agentNotFound(id: string): DeputeError {
  return new DeputeError(ErrorReason.AGENT_NOT_FOUND, `no agent ${id}`, { metadata: { agent: id } });
}
