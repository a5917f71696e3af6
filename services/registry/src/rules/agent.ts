import { create } from "@bufbuild/protobuf";
import { durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import {
  type Agent,
  AgentHealth,
  AgentSchema,
  AgentStatus,
  AgentVisibility,
} from "@depute/contracts/depute/registry/v1/agent_pb";
import { decodeHex, toTimestamp } from "@depute/core";
import { inherit } from "./instances.ts";

/** An agent's stored record. Times are epoch milliseconds. */
export interface StoredAgent {
  /** The effective record. For an instance it includes the members that the base supplies. */
  readonly record: Agent;
  /** The members that the registration set, without the members that the registry sets. */
  readonly ownerMembers: Agent;
  readonly status: AgentStatus;
  readonly statusMessage: string;
  /** Number and digest of the current version; 0 and empty if the record has no version. */
  readonly revision: number;
  readonly digest: string;
  readonly capabilityIds: readonly string[];
  readonly createTime: number;
  readonly updateTime: number;
  /** The time of the last heartbeat, in epoch milliseconds; NO_HEARTBEAT for none. */
  readonly heartbeatTime: number;
  readonly expireTime: number;
}

/** The number and digest that identify one version. */
export interface VersionIdentity {
  readonly revision: number;
  readonly digest: string;
}

/**
 * Returns the record of an agent that registers at `now`. A known agent keeps its capabilities, creation time and last
 * heartbeat. The agent becomes active, and its lease begins.
 *
 * @param base the record of the base, for an instance
 */
export function createStoredAgent(
  agent: Agent,
  registered: StoredAgent | undefined,
  now: number,
  { revision, digest }: VersionIdentity = { revision: 0, digest: "" },
  base?: Agent,
): StoredAgent {
  const ownersRecord = ownerRecord(agent);
  return {
    ownerMembers: ownersRecord,
    record: base === undefined ? ownersRecord : inherit(ownersRecord, base),
    status: AgentStatus.ACTIVE,
    statusMessage: "",
    revision,
    digest,
    capabilityIds: registered?.capabilityIds ?? [],
    createTime: registered?.createTime ?? now,
    updateTime: now,
    heartbeatTime: registered?.heartbeatTime ?? NO_HEARTBEAT,
    expireTime: leaseExpiry(now, leaseMsOf(agent)),
  };
}

/** Whether an agent may take work: the agent is not removed, and its lease has not ended. */
export function isLive(agent: StoredAgent, { asOf }: LivenessView): boolean {
  return agent.status !== AgentStatus.REMOVED && agent.expireTime > asOf;
}

/** Converts a stored agent to its contract message. */
export function toAgentMessage(agent: StoredAgent, view: LivenessView): Agent {
  const message = ownerRecord(agent.record);
  message.status = agent.status;
  message.statusMessage = agent.statusMessage;
  message.revision = BigInt(agent.revision);
  message.digest = digestBytes(agent.digest);
  message.health = healthAt(agent, view);
  message.capabilityIds = [...agent.capabilityIds];
  message.createTime = toTimestamp(agent.createTime);
  message.updateTime = toTimestamp(agent.updateTime);
  if (agent.heartbeatTime !== NO_HEARTBEAT) message.heartbeatTime = toTimestamp(agent.heartbeatTime);
  if (agent.expireTime !== NO_EXPIRY) message.leaseExpireTime = toTimestamp(agent.expireTime);
  return message;
}

/** Returns the members of a record that the registration set, without the members that the registry sets. */
export function ownerRecord(agent: Agent): Agent {
  const { id, displayName, description, version, organization, principal } = agent;
  const { tags, protocols, visibility, visibleTo } = agent;
  const part = create(AgentSchema, { id, displayName, description, version, organization, principal });
  // Equal leases must have equal digests. So this code writes whole milliseconds, and omits a zero lease.
  const leaseMs = leaseMsOf(agent);
  if (leaseMs !== 0) part.leaseDuration = durationFromMs(leaseMs);
  part.tags = [...tags];
  part.protocols = [...protocols];
  part.visibility = visibility;
  part.visibleTo = [...visibleTo];
  part.signedCard = agent.signedCard;
  if (agent.manifest !== undefined) part.manifest = agent.manifest;
  if (agent.nekte !== undefined) part.nekte = agent.nekte;
  if (agent.a2aCard !== undefined) part.a2aCard = agent.a2aCard;
  if (agent.delegation !== undefined) part.delegation = agent.delegation;
  if (agent.card !== undefined) {
    // Removes the trust members, because only the registry may set them.
    const { trustScore: _, trustLevel: __, trustComponents: ___, ...card } = agent.card;
    part.card = card;
  }
  return part;
}

/** The heartbeat time of an agent that has sent no heartbeat. */
export const NO_HEARTBEAT = 0;

/** The expiry of a lease that never ends. The expiry is a number, so that one comparison finds all live agents. */
export const NO_EXPIRY = Number.MAX_SAFE_INTEGER;

/** The times that decide whether an agent is live, in epoch milliseconds. */
export interface LivenessView {
  readonly now: number;
  /**
   * A lease that ends after this time counts as running. Normally the value is `now`. While the removal guard holds,
   * the value is an earlier time.
   */
  readonly asOf: number;
}

/** Returns the lease duration that an agent requests, in milliseconds; 0 for none. */
export function leaseMsOf({ leaseDuration }: Agent): number {
  return leaseDuration === undefined ? 0 : Math.trunc(durationMs(leaseDuration));
}

/** Converts a stored digest to the form in the contract: 32 bytes, or no bytes for an empty text. */
export function digestBytes(hex: string): Uint8Array {
  return decodeHex(hex) ?? new Uint8Array();
}

/**
 * Returns the expiry of a lease.
 *
 * @param extendedTime the time of the last registration or heartbeat, epoch milliseconds
 * @param leaseMs milliseconds; 0 for an agent without a lease
 * @returns epoch milliseconds; {@link NO_EXPIRY} without a lease
 */
export function leaseExpiry(extendedTime: number, leaseMs: number): number {
  return leaseMs === 0 ? NO_EXPIRY : extendedTime + leaseMs;
}

/**
 * Returns an agent's health. While its lease runs, the agent is ALIVE, or UNKNOWN without a heartbeat. From the
 * millisecond in which its lease expires, the agent is LOST, or SUSPECT while the removal guard holds.
 *
 * @param heartbeatTime epoch milliseconds; {@link NO_HEARTBEAT} for none
 */
export function healthAt(
  { expireTime, heartbeatTime }: { readonly expireTime: number; readonly heartbeatTime: number },
  { now, asOf }: LivenessView,
): AgentHealth {
  if (expireTime > now) return heartbeatTime === NO_HEARTBEAT ? AgentHealth.UNKNOWN : AgentHealth.ALIVE;
  return expireTime > asOf ? AgentHealth.SUSPECT : AgentHealth.LOST;
}

/** The principal for which a read is made. `all` stands for the platform, which sees every agent. */
export type Viewer = "all" | { readonly principal: string };

/** The members of a record that decide its visibility. */
export type VisibilityFields = Pick<Agent, "principal" | "organization" | "visibility" | "visibleTo">;

/**
 * Returns true if the record alone shows that a viewer may see the agent. Returns undefined if the decision needs a
 * read of the store.
 */
export function isVisibleByRecord(viewer: Viewer, sight: VisibilityFields): true | undefined {
  if (viewer === "all") return true;
  const isNarrow =
    sight.visibility === AgentVisibility.ORGANIZATION || sight.visibility === AgentVisibility.NAMED;
  return !isNarrow || sight.principal === viewer.principal || undefined;
}
