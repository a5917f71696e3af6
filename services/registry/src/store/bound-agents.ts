import type { AgentManifest } from "@depute/contracts/cap/v1/manifest_pb";
import type { ReadTx } from "@depute/store";
import type { StoredAgent } from "../rules/agent.ts";
import { listBoundAgents } from "./agents.ts";

/**
 * Number of agents that one SQL statement reads (BATCH), and maximum number of agents of one key (MAX_BOUND_AGENTS).
 */
const BATCH = 50;
export const MAX_BOUND_AGENTS = 1_000;

/**
 * Yields the agents whose manifests bind a key, in the order of their ids, at most `MAX_BOUND_AGENTS`. Includes removed
 * and deprecated agents. Omits instances, because they have their base's manifest.
 */
export async function* boundAgents(tx: ReadTx, principal: string): AsyncGenerator<StoredAgent> {
  let after = "";
  for (let read = 0; read < MAX_BOUND_AGENTS; read += BATCH) {
    const agents = await listBoundAgents(tx, principal, after, BATCH);
    for (const agent of agents) if (agent.record.manifest !== undefined) yield agent;
    const last = agents.at(-1);
    if (last === undefined || agents.length < BATCH) return;
    after = last.record.id;
  }
}

/** Returns the manifests that bind a key, except the manifest of `agentId`. */
export async function otherManifests(
  tx: ReadTx,
  principal: string,
  agentId: string,
): Promise<AgentManifest[]> {
  const manifests: AgentManifest[] = [];
  if (principal === "") return manifests;
  for await (const { record } of boundAgents(tx, principal)) {
    if (record.id !== agentId && record.manifest !== undefined) manifests.push(record.manifest);
  }
  return manifests;
}
