import { AgentVisibility } from "@depute/contracts/depute/registry/v1/agent_pb";
import { FOUND, type ReadTx, type SqlValue, type WriteTx } from "@depute/store";
import { isVisibleByRecord, type Viewer, type VisibilityFields } from "../rules/agent.ts";

/** Whether a viewer may see an agent. {@link visibilityCondition} is the same rule for lists. */
export async function isVisible(tx: ReadTx, viewer: Viewer, sight: VisibilityFields): Promise<boolean> {
  if (viewer === "all" || isVisibleByRecord(viewer, sight)) return true;
  const { principal } = viewer;
  switch (sight.visibility) {
    case AgentVisibility.ORGANIZATION:
      return isMember(tx, sight.organization, principal);
    case AgentVisibility.NAMED: {
      if (sight.visibleTo.includes(principal)) return true;
      const principalsJson = JSON.stringify(sight.visibleTo);
      const owned = await tx.get(
        FOUND,
        "SELECT 1 FROM agents WHERE principal = ? AND id IN (SELECT value FROM json_each(?)) LIMIT 1",
        [principal, principalsJson],
      );
      return owned !== undefined;
    }
    default:
      return true;
  }
}

/** The rule of {@link isVisible} as an SQL condition on `agents a`. */
export function visibilityCondition(viewer: Viewer): { sql: string; params: SqlValue[] } {
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

/** Whether a principal is a member of an organization. */
export async function isMember(tx: ReadTx, organization: string, principal: string): Promise<boolean> {
  const row = await tx.get(FOUND, "SELECT 1 FROM members WHERE organization = ? AND principal = ?", [
    organization,
    principal,
  ]);
  return row !== undefined;
}

/** Replaces the list of principals and agents that may see an agent. */
export async function replaceViewers(
  tx: WriteTx,
  agentId: string,
  viewers: readonly string[],
): Promise<void> {
  await tx.run("DELETE FROM viewers WHERE agent_id = ?", [agentId]);
  for (const viewer of new Set(viewers)) {
    await tx.run("INSERT INTO viewers (agent_id, viewer) VALUES (?, ?)", [agentId, viewer]);
  }
}
