import { integer, type ReadTx, row, text, type WriteTx } from "@depute/store";
import type { Binding } from "../rules/bindings.ts";

const BINDING_ROW = row({ revocation_id: text, audiences: text, tenants: text, single_use: integer });
const ID_ROW = row({ id: text });

/** Stores the binding of a block. If the block already has a binding, changes nothing. */
export async function bindBlock(tx: WriteTx, revocationId: string, binding: Binding): Promise<void> {
  await tx.run(
    `INSERT INTO block_bindings (revocation_id, audiences, tenants, single_use) VALUES (?, ?, ?, ?)
     ON CONFLICT (revocation_id) DO NOTHING`,
    [
      ...[revocationId, JSON.stringify(binding.audiences), JSON.stringify(binding.tenants)],
      binding.singleUse ? 1 : 0,
    ],
  );
}

/** Returns the bindings of the given blocks. A block without a binding adds none. */
export async function readBindings(tx: ReadTx, revocationIds: readonly string[]): Promise<Binding[]> {
  return [...(await readBindingsById(tx, revocationIds)).values()];
}

/** Returns the bindings of the given blocks, by block. A block without a binding is absent. */
export async function readBindingsById(
  tx: ReadTx,
  revocationIds: readonly string[],
): Promise<ReadonlyMap<string, Binding>> {
  const rows = await tx.all(
    BINDING_ROW,
    `SELECT revocation_id, audiences, tenants, single_use FROM block_bindings
     WHERE revocation_id IN (${revocationIds.map(() => "?").join(", ")})`,
    revocationIds,
  );
  return new Map(
    rows.map(({ revocation_id, audiences, tenants, single_use }) => {
      const binding = {
        audiences: JSON.parse(audiences),
        tenants: JSON.parse(tenants),
        singleUse: single_use === 1,
      };
      return [revocation_id, binding];
    }),
  );
}

/** Marks a single-use block as used. Returns false if it was used before. */
export async function useBlock(tx: WriteTx, revocationId: string, expireTime: number): Promise<boolean> {
  const { changes } = await tx.run(
    "INSERT INTO used_blocks (revocation_id, expire_ms) VALUES (?, ?) ON CONFLICT (revocation_id) DO NOTHING",
    [revocationId, expireTime],
  );
  return changes === 1;
}

/** Deletes some records of used blocks that expired before a time; returns the number of records. */
export async function forgetUsedBlocks(tx: WriteTx, before: number, limit: number): Promise<number> {
  const { changes } = await tx.run(
    `DELETE FROM used_blocks WHERE revocation_id IN
       (SELECT revocation_id FROM used_blocks WHERE expire_ms < ? ORDER BY expire_ms LIMIT ?)`,
    [before, limit],
  );
  return changes;
}

/** Returns the ids of all blocks that have a binding, spend or reservations. */
export async function readNotedBlocks(tx: ReadTx): Promise<string[]> {
  const rows = await tx.all(
    ID_ROW,
    "SELECT revocation_id AS id FROM block_bindings UNION SELECT revocation_id FROM spend",
  );
  return rows.map(({ id }) => id);
}
