import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import { integer, type ReadTx, row, text, type WriteTx } from "@depute/store";
import type { PerOwner } from "../rules/open-tasks.ts";

/**
 * The principal without quotas. No row counts its tasks, because concurrent transactions would contend for that row.
 */
const UNCOUNTED = "local";

type Owners = Pick<Task, "delegator" | "organization">;

const COUNT_ROW = row({ owner: text, open: integer });

/** Returns the keys of the rows that count a task. */
function keysOf({ delegator, organization }: Owners): string[] {
  if (delegator === UNCOUNTED) return [];
  return organization === ""
    ? [principalKey(delegator)]
    : [principalKey(delegator), organizationKey(organization)];
}

const principalKey = (principal: string) => `principal ${principal}`;
const organizationKey = (organization: string) => `organization ${organization}`;

/** Returns the numbers of open tasks of a delegator and an organization. */
export async function countOpenTasks(tx: ReadTx, owners: Owners): Promise<PerOwner> {
  const rows = await tx.all(COUNT_ROW, "SELECT owner, open FROM open_tasks WHERE owner IN (?, ?)", [
    principalKey(owners.delegator),
    organizationKey(owners.organization),
  ]);
  return countsIn(rows, owners);
}

function countsIn(
  rows: readonly { readonly owner: string; readonly open: number }[],
  { delegator, organization }: Owners,
): PerOwner {
  const openOf = (key: string) => rows.find(({ owner }) => owner === key)?.open ?? 0;
  return {
    principal: openOf(principalKey(delegator)),
    organization: organization === "" ? 0 : openOf(organizationKey(organization)),
  };
}

/**
 * Counts a new task.
 *
 * @returns the numbers of open tasks of the delegator and the organization, without the new task
 */
export async function addOpenTask(tx: WriteTx, owners: Owners): Promise<PerOwner> {
  const keys = keysOf(owners);
  if (keys.length === 0) return { principal: 0, organization: 0 };
  const values = keys.map(() => "(?, 1)").join(", ");
  const rows = await tx.all(
    COUNT_ROW,
    `INSERT INTO open_tasks (owner, open) VALUES ${values}
     ON CONFLICT (owner) DO UPDATE SET open = open_tasks.open + 1 RETURNING owner, open - 1 AS open`,
    keys,
  );
  return countsIn(rows, owners);
}

/** Counts the end of a task. An owner without open tasks has no row. */
export async function removeOpenTask(tx: WriteTx, owners: Owners): Promise<void> {
  const keys = keysOf(owners);
  if (keys.length === 0) return;
  const marks = keys.map(() => "?").join(", ");
  const rows = await tx.all(
    COUNT_ROW,
    `UPDATE open_tasks SET open = open - 1 WHERE owner IN (${marks}) RETURNING owner, open`,
    keys,
  );
  if (rows.some(({ open }) => open <= 0))
    await tx.run(`DELETE FROM open_tasks WHERE owner IN (${marks}) AND open <= 0`, keys);
}

/**
 * Counts all open tasks again, because a process of an older version counts no tasks during a rolling upgrade. The
 * query selects rows with a next deadline, because only open tasks have one.
 */
export async function recountOpenTasks(tx: WriteTx): Promise<void> {
  await tx.run("DELETE FROM open_tasks");
  await tx.run(
    `INSERT INTO open_tasks (owner, open)
     SELECT 'principal ' || delegator, count(*) FROM tasks
     WHERE next_deadline_ms IS NOT NULL AND delegator <> ? GROUP BY delegator`,
    [UNCOUNTED],
  );
  await tx.run(
    `INSERT INTO open_tasks (owner, open)
     SELECT 'organization ' || organization, count(*) FROM tasks
     WHERE next_deadline_ms IS NOT NULL AND delegator <> ? AND organization <> '' GROUP BY organization`,
    [UNCOUNTED],
  );
}
