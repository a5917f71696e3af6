import type { ReadTx } from "@depute/store";
import type { AgentIndex } from "../agent-index/agent-index.ts";
import type { StoredAgent } from "../rules/agent.ts";
import { searchKeys } from "../rules/registration.ts";
import { type AgentFilter, type AgentList, type AgentPage, agentsAmong, agentsBehind } from "./agents.ts";

/** Agents read in one statement, and looked at in one list: what one call may cost, however few it finds. */
const BATCH = 200;
const MAX_LOOKED_AT = 2_000;

/** As `listAgents`, of agents that have all of some keys: by the index in memory where that tells of few enough. */
export async function listAgentsByKeys(
  tx: ReadTx,
  index: AgentIndex,
  keys: readonly string[],
  filter: AgentFilter,
  page: AgentPage,
): Promise<AgentList> {
  const agents: StoredAgent[] = [];
  let { after } = page;
  for (let seen = 0; seen < MAX_LOOKED_AT; seen += BATCH) {
    const ids = index.findAgents(keys, after, BATCH);
    const batch =
      ids === undefined
        ? await agentsBehind(tx, filter, { ...page, after, limit: BATCH })
        : await agentsAmong(tx, filter, ids, page);
    // The index may be a moment ahead, and the walk knows nothing of keys.
    agents.push(...batch.filter(({ record }) => hasAll(searchKeys(record), keys)));
    const read = ids?.length ?? batch.length;
    const last = ids?.at(-1) ?? batch.at(-1)?.record.id;
    if (last === undefined || read < BATCH || agents.length >= page.limit) {
      return { agents: agents.slice(0, page.limit), stoppedAt: undefined };
    }
    after = last;
  }
  return { agents, stoppedAt: after };
}

function hasAll(own: readonly string[], keys: readonly string[]): boolean {
  return keys.every((key) => own.includes(key));
}
