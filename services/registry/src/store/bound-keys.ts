import type { WriteTx } from "@depute/store";
import type { StoredAgent } from "../rules/agent.ts";

/** Notes that an agent's manifest binds its key. It does so for good: a replaced key stays bound, too. */
export async function bindKey(tx: WriteTx, { record }: StoredAgent): Promise<void> {
  if (record.principal === "" || record.manifest === undefined) return;
  await tx.run("INSERT INTO bound_keys (principal, agent_id) VALUES (?, ?) ON CONFLICT DO NOTHING", [
    record.principal,
    record.id,
  ]);
}
