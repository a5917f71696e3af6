import { AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import { AgentChangeKind } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import type { WriteTx } from "@depute/store";
import { type RegistryContext, recordChange } from "../context.ts";
import type { StoredAgent } from "../rules/agent.ts";
import { putState } from "../store/agents.ts";
import { retireLease } from "../store/leases.ts";

/** Removes an agent from discovery. The record stays, so that no other agent gets the id. */
export async function removeAgent(
  registry: RegistryContext,
  tx: WriteTx,
  agent: StoredAgent,
  statusMessage: string,
  now: number,
): Promise<StoredAgent> {
  const removed: StoredAgent = { ...agent, status: AgentStatus.REMOVED, statusMessage, updateTime: now };
  await putState(tx, registry, removed);
  await retireLease(tx, agent.record.id);
  await recordChange(registry, tx, AgentChangeKind.REMOVED, agent.record);
  return removed;
}
