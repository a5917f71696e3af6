import type { WriteTx } from "@depute/store";
import type { StoredAgent } from "../rules/agent.ts";

/**
 * Records that an agent's manifest binds the agent's key. The row stays until the agent is purged, so the manifest
 * still binds this key after the agent has another key.
 */
export async function bindKey(tx: WriteTx, { record }: StoredAgent): Promise<void> {
  if (record.principal === "" || record.manifest === undefined) return;
  await tx.run("INSERT INTO bound_keys (principal, agent_id) VALUES (?, ?) ON CONFLICT DO NOTHING", [
    record.principal,
    record.id,
  ]);
}
