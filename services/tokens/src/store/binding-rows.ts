import type { ReadTx, WriteTx } from "@depute/store";
import type { Binding } from "../rules/bindings.ts";

/** Binds a block, once: what it was bound to before stays. */
export async function bindBlock(tx: WriteTx, revocationId: string, binding: Binding): Promise<void> {
  await tx.run(
    `INSERT INTO block_bindings (revocation_id, audiences, tenants) VALUES (?, ?, ?)
     ON CONFLICT (revocation_id) DO NOTHING`,
    [revocationId, JSON.stringify(binding.audiences), JSON.stringify(binding.tenants)],
  );
}

/** The bindings of those of these blocks that have one. */
export async function readBindings(tx: ReadTx, revocationIds: readonly string[]): Promise<Binding[]> {
  const rows = await tx.all<{ audiences: string; tenants: string }>(
    `SELECT audiences, tenants FROM block_bindings WHERE revocation_id IN (${revocationIds.map(() => "?").join(", ")})`,
    revocationIds,
  );
  return rows.map(({ audiences, tenants }) => ({
    audiences: JSON.parse(audiences),
    tenants: JSON.parse(tenants),
  }));
}

/** The ids of all blocks that have a binding, or under which something was spent or is held. */
export async function readNotedBlocks(tx: ReadTx): Promise<string[]> {
  const rows = await tx.all<{ id: string }>(
    "SELECT revocation_id AS id FROM block_bindings UNION SELECT revocation_id FROM spend",
  );
  return rows.map(({ id }) => id);
}
