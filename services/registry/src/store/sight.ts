import { type Agent, AgentVisibility } from "@depute/contracts/depute/registry/v1/agent_pb";
import { FOUND, type ReadTx, type SqlValue, type WriteTx } from "@depute/store";

/** By whose sight a call is answered: everything's, or one principal's. */
export type Viewer = "all" | { readonly principal: string };

/** What says who may see an agent. */
export type Sight = Pick<Agent, "principal" | "organization" | "visibility" | "visibleTo">;

/** Whether a viewer may know of an agent as far as the agent itself says; undefined where the store has to be asked. */
export function seesAtOnce(viewer: Viewer, sight: Sight): true | undefined {
  if (viewer === "all") return true;
  const isNarrow =
    sight.visibility === AgentVisibility.ORGANIZATION || sight.visibility === AgentVisibility.NAMED;
  return !isNarrow || sight.principal === viewer.principal || undefined;
}

/** Whether a viewer may know of an agent. The lists ask the same of `agents a` with {@link sightCondition}. */
export async function sees(tx: ReadTx, viewer: Viewer, sight: Sight): Promise<boolean> {
  if (viewer === "all" || seesAtOnce(viewer, sight)) return true;
  const { principal } = viewer;
  switch (sight.visibility) {
    case AgentVisibility.ORGANIZATION:
      return isMember(tx, sight.organization, principal);
    case AgentVisibility.NAMED: {
      if (sight.visibleTo.includes(principal)) return true;
      const named = JSON.stringify(sight.visibleTo);
      const owned = await tx.get(
        FOUND,
        "SELECT 1 FROM agents WHERE principal = ? AND id IN (SELECT value FROM json_each(?)) LIMIT 1",
        [principal, named],
      );
      return owned !== undefined;
    }
    default:
      return true;
  }
}

/** The same as a condition on `agents a`. */
export function sightCondition(viewer: Viewer): { sql: string; params: SqlValue[] } {
  if (viewer === "all") return { sql: "", params: [] };
  const { principal } = viewer;
  return {
    sql: `(a.visibility = ${AgentVisibility.PUBLIC} OR a.principal = ?
      OR (a.visibility = ${AgentVisibility.ORGANIZATION} AND EXISTS (
        SELECT 1 FROM members m WHERE m.organization = a.organization AND m.principal = ?))
      OR (a.visibility = ${AgentVisibility.NAMED} AND EXISTS (
        SELECT 1 FROM viewers v LEFT JOIN agents o ON o.id = v.viewer
        WHERE v.agent_id = a.id AND (v.viewer = ? OR o.principal = ?))))`,
    params: [principal, principal, principal, principal],
  };
}

/** Whether a principal belongs to an organization. */
export async function isMember(tx: ReadTx, organization: string, principal: string): Promise<boolean> {
  const row = await tx.get(FOUND, "SELECT 1 FROM members WHERE organization = ? AND principal = ?", [
    organization,
    principal,
  ]);
  return row !== undefined;
}

/** Writes whom an agent is visible to, in place of those before. */
export async function putViewers(tx: WriteTx, agentId: string, viewers: readonly string[]): Promise<void> {
  await tx.run("DELETE FROM viewers WHERE agent_id = ?", [agentId]);
  for (const viewer of new Set(viewers)) {
    await tx.run("INSERT INTO viewers (agent_id, viewer) VALUES (?, ?)", [agentId, viewer]);
  }
}
