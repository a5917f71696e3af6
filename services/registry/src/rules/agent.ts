import { create } from "@bufbuild/protobuf";
import { type Agent, AgentSchema, AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import { toTimestamp } from "@depute/core";
import { healthAt, leaseExpiry, NO_EXPIRY } from "./liveness.ts";

/** An agent as the registry keeps it; times are epoch ms. */
export interface StoredAgent {
  /** What its owner registered, without what the registry sets. */
  readonly record: Agent;
  readonly status: AgentStatus;
  readonly capabilityIds: readonly string[];
  readonly createTime: number;
  readonly updateTime: number;
  readonly heartbeatTime: number;
  readonly expireTime: number;
}

/**
 * An agent registered at `now`: new, or in place of `known`, whose capabilities and time of creation it keeps. It is
 * active, whatever the known one was, and has been heard of now.
 */
export function register(agent: Agent, known: StoredAgent | undefined, now: number): StoredAgent {
  return {
    record: ownersPart(agent),
    status: AgentStatus.ACTIVE,
    capabilityIds: known?.capabilityIds ?? [],
    createTime: known?.createTime ?? now,
    updateTime: now,
    heartbeatTime: now,
    expireTime: leaseExpiry(now, Number(agent.leaseMs)),
  };
}

/** Whether an agent can be handed work at `now`: active, and its lease has not run out. */
export function isLiving(agent: StoredAgent, now: number): boolean {
  return agent.status === AgentStatus.ACTIVE && agent.expireTime > now;
}

/** The agent as it is answered at `now`. */
export function present(agent: StoredAgent, now: number): Agent {
  const message = ownersPart(agent.record);
  message.status = agent.status;
  message.health = healthAt(agent.expireTime, now);
  message.capabilityIds = [...agent.capabilityIds];
  message.createTime = toTimestamp(agent.createTime);
  message.updateTime = toTimestamp(agent.updateTime);
  message.heartbeatTime = toTimestamp(agent.heartbeatTime);
  if (agent.expireTime !== NO_EXPIRY) message.leaseExpireTime = toTimestamp(agent.expireTime);
  return message;
}

function ownersPart(agent: Agent): Agent {
  const { id, displayName, description, version, organization, principal, manifest, leaseMs } = agent;
  const part = { id, displayName, description, version, organization, principal, leaseMs };
  return create(AgentSchema, manifest === undefined ? part : { ...part, manifest });
}
