import { fromBinary } from "@bufbuild/protobuf";
import { AgentSchema, AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import { bytes, memberOf, type ReadTx, row, type Store, text, type WriteTx } from "@depute/store";
import type { AgentIndex, IndexedCapability } from "../agent-index/agent-index.ts";
import type { StoredAgent } from "../rules/agent.ts";
import { searchKeys } from "../rules/registration.ts";

const ID_STATUS_RECORD_ROW = row({ id: text, status: memberOf(AgentStatus), record: bytes });
const INDEXED_CAPABILITY_ROW = row<IndexedCapability>({ id: text, category: text });

/** Agents read in one transaction while an index is filled. */
const BATCH = 500;

/** Puts an agent into the index as this transaction leaves it, once that is durable. Its capabilities are written before. */
export async function indexAgent(
  tx: WriteTx,
  index: AgentIndex,
  { record, status, capabilityIds }: StoredAgent,
): Promise<void> {
  const capabilities = capabilityIds.length === 0 ? [] : await capabilitiesOf(tx, record.id);
  const agent = { id: record.id, active: isActive(status), keys: searchKeys(record), capabilities };
  tx.afterCommit(() => index.put(agent));
}

/** Fills an empty index with what is in the store, some agents at a time. */
export async function fillIndex(store: Store, index: AgentIndex): Promise<void> {
  index.beginLoading();
  let after: string | undefined = "";
  while (after !== undefined) after = await store.read((tx) => fillSome(tx, index, after ?? ""));
  index.endLoading();
}

/** @returns the last agent that was read, or undefined when there are no more */
async function fillSome(tx: ReadTx, index: AgentIndex, after: string): Promise<string | undefined> {
  const agents = await tx.all(
    ID_STATUS_RECORD_ROW,
    "SELECT id, status, record FROM agents WHERE id > ? ORDER BY id LIMIT ?",
    [after, BATCH],
  );
  for (const { id, status, record } of agents) {
    const keys = searchKeys(fromBinary(AgentSchema, record));
    index.put({ id, active: isActive(status), keys, capabilities: await capabilitiesOf(tx, id) });
  }
  return agents.at(-1)?.id;
}

function capabilitiesOf(tx: ReadTx, agentId: string): Promise<IndexedCapability[]> {
  return tx.all(
    INDEXED_CAPABILITY_ROW,
    "SELECT id, category_key AS category FROM capabilities WHERE agent_id = ?",
    [agentId],
  );
}

function isActive(status: AgentStatus): boolean {
  return status === AgentStatus.ACTIVE;
}
