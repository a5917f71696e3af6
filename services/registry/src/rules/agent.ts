import { create } from "@bufbuild/protobuf";
import { type Agent, AgentSchema, AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import { toTimestamp } from "@depute/core";
import { inherit } from "./instances.ts";
import { healthAt, type LivenessView, leaseExpiry, NO_EXPIRY, NO_HEARTBEAT } from "./liveness.ts";

/** An agent as the registry keeps it; times are epoch ms. */
export interface StoredAgent {
  /** What holds: what its owner registered, and for an instance what it has from its base. */
  readonly record: Agent;
  /** What its owner registered, without what the registry sets. */
  readonly own: Agent;
  readonly status: AgentStatus;
  readonly statusMessage: string;
  /** Of the present version; 0 and empty for one from before versions were kept. */
  readonly revision: number;
  readonly digest: string;
  readonly capabilityIds: readonly string[];
  readonly createTime: number;
  readonly updateTime: number;
  /** Epoch ms; NO_HEARTBEAT for none. */
  readonly heartbeatTime: number;
  readonly expireTime: number;
}

/** What a version is told by. */
export interface VersionName {
  readonly revision: number;
  readonly digest: string;
}

/**
 * An agent registered at `now`: new, or in place of `known`, whose capabilities, time of creation and last heartbeat it
 * keeps. It is active, whatever the known one was, and its lease begins.
 *
 * @param base the record of the agent that it is an instance of
 */
export function register(
  agent: Agent,
  known: StoredAgent | undefined,
  now: number,
  { revision, digest }: VersionName = { revision: 0, digest: "" },
  base?: Agent,
): StoredAgent {
  const own = ownersPart(agent);
  return {
    own,
    record: base === undefined ? own : inherit(own, base),
    status: AgentStatus.ACTIVE,
    statusMessage: "",
    revision,
    digest,
    capabilityIds: known?.capabilityIds ?? [],
    createTime: known?.createTime ?? now,
    updateTime: now,
    heartbeatTime: known?.heartbeatTime ?? NO_HEARTBEAT,
    expireTime: leaseExpiry(now, Number(agent.leaseMs)),
  };
}

/** Whether an agent can be handed work: not removed, and its lease has not run out. */
export function isLiving(agent: StoredAgent, { asOf }: LivenessView): boolean {
  return agent.status !== AgentStatus.REMOVED && agent.expireTime > asOf;
}

/** The agent as it is answered. */
export function present(agent: StoredAgent, view: LivenessView): Agent {
  const message = ownersPart(agent.record);
  message.status = agent.status;
  message.statusMessage = agent.statusMessage;
  message.revision = BigInt(agent.revision);
  message.digest = agent.digest;
  message.health = healthAt(agent, view);
  message.capabilityIds = [...agent.capabilityIds];
  message.createTime = toTimestamp(agent.createTime);
  message.updateTime = toTimestamp(agent.updateTime);
  if (agent.heartbeatTime !== NO_HEARTBEAT) message.heartbeatTime = toTimestamp(agent.heartbeatTime);
  if (agent.expireTime !== NO_EXPIRY) message.leaseExpireTime = toTimestamp(agent.expireTime);
  return message;
}

/** What an owner says of an agent: the record without the members that the registry sets. */
export function ownersPart(agent: Agent): Agent {
  const { id, displayName, description, version, organization, principal, leaseMs } = agent;
  const { tags, protocols, visibility, visibleTo } = agent;
  const part = create(AgentSchema, { id, displayName, description, version, organization, principal });
  part.leaseMs = leaseMs;
  part.tags = [...tags];
  part.protocols = [...protocols];
  part.visibility = visibility;
  part.visibleTo = [...visibleTo];
  part.signedCard = agent.signedCard;
  if (agent.manifest !== undefined) part.manifest = agent.manifest;
  if (agent.nekte !== undefined) part.nekte = agent.nekte;
  if (agent.delegation !== undefined) part.delegation = agent.delegation;
  if (agent.card !== undefined) {
    // How far an agent is trusted is not for itself to say.
    const { trustScore: _, trustLevel: __, trustComponents: ___, ...card } = agent.card;
    part.card = card;
  }
  return part;
}
