import { integer, type ReadTx, type RowOf, row, text, type WriteTx } from "@depute/store";
import type { TaskEngine, TaskRecord } from "../../core/index.ts";
import type { TaskFacts } from "../rules/permit.ts";
import { parentIdOf } from "../rules/task-id.ts";

/** The facts about a task that CAP adds to the task engine's record. */
export interface CapTask {
  /** CAP's dotted id of the task, such as T1.1. */
  readonly capTaskId: string;
  readonly rootId: string;
  /** The task's id in the task engine. */
  readonly taskId: string;
  readonly delegatorId: string;
  readonly agentId: string;
  /** The task that this task reviews; empty if this task is not a review. */
  readonly reviewsId: string;
  /** The id of the message that delegated the task. */
  readonly noticeId: string;
  readonly createMs: number;
}

const ROW = row({
  cap_task_id: text,
  root_id: text,
  task_id: text,
  delegator_id: text,
  agent_id: text,
  reviews_id: text,
  notice_id: text,
  create_ms: integer,
});
type Row = RowOf<typeof ROW>;

const COLUMNS = "cap_task_id, root_id, task_id, delegator_id, agent_id, reviews_id, notice_id, create_ms";

/** Stores an open task. */
export async function insertCapTask(tx: WriteTx, task: CapTask): Promise<void> {
  await tx.run(`INSERT INTO cap_tasks (${COLUMNS}, is_open) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1)`, [
    task.capTaskId,
    task.rootId,
    task.taskId,
    task.delegatorId,
    task.agentId,
    task.reviewsId,
    task.noticeId,
    task.createMs,
  ]);
}

/** Assigns a CAP task id to a new task of the task engine, for the same or another agent. */
export async function replaceCapTask(tx: WriteTx, task: Omit<CapTask, "rootId" | "createMs">): Promise<void> {
  await tx.run(
    `UPDATE cap_tasks SET task_id = ?, delegator_id = ?, agent_id = ?, reviews_id = ?, notice_id = ?, is_open = 1
     WHERE cap_task_id = ?`,
    [task.taskId, task.delegatorId, task.agentId, task.reviewsId, task.noticeId, task.capTaskId],
  );
}

/** Records that a task of the engine has ended. */
export async function closeCapTask(tx: WriteTx, taskId: string): Promise<void> {
  await tx.run("UPDATE cap_tasks SET is_open = 0 WHERE task_id = ?", [taskId]);
}

export async function readCapTask(tx: ReadTx, capTaskId: string): Promise<CapTask | undefined> {
  const row = await tx.get(ROW, `SELECT ${COLUMNS} FROM cap_tasks WHERE cap_task_id = ?`, [capTaskId]);
  return row && toCapTask(row);
}

/** Finds the CAP task that belongs to a task of the engine. */
export async function findCapTask(tx: ReadTx, taskId: string): Promise<CapTask | undefined> {
  const row = await tx.get(ROW, `SELECT ${COLUMNS} FROM cap_tasks WHERE task_id = ?`, [taskId]);
  return row && toCapTask(row);
}

/** Lists the tasks that review a task, newest last. */
export async function reviewsOf(tx: ReadTx, capTaskId: string): Promise<CapTask[]> {
  const rows = await tx.all(
    ROW,
    `SELECT ${COLUMNS} FROM cap_tasks WHERE reviews_id = ? AND reviews_id <> '' ORDER BY create_ms, cap_task_id`,
    [capTaskId],
  );
  return rows.map(toCapTask);
}

/** Lists the tasks of a lineage in the order of their creation. */
export async function tasksOfLineage(tx: ReadTx, rootId: string, limit: number): Promise<CapTask[]> {
  const rows = await tx.all(
    ROW,
    `SELECT ${COLUMNS} FROM cap_tasks WHERE root_id = ? ORDER BY create_ms, cap_task_id LIMIT ?`,
    [rootId, limit],
  );
  return rows.map(toCapTask);
}

/** CAP's facts about a task, together with the task engine's record. */
export interface Known {
  readonly cap: CapTask;
  readonly record: TaskRecord;
}

/** Finds a task by CAP's id; undefined for an unknown id. */
export async function readKnown(
  tx: ReadTx,
  engine: Pick<TaskEngine, "find">,
  capTaskId: string,
): Promise<Known | undefined> {
  const cap = await readCapTask(tx, capTaskId);
  const record = cap && (await engine.find(tx, cap.taskId));
  return cap !== undefined && record !== undefined ? { cap, record } : undefined;
}

/** Returns the facts about a task for CAP's rules. */
export function factsOf({ cap, record }: Known): TaskFacts {
  return {
    taskId: cap.capTaskId,
    delegatorId: cap.delegatorId,
    agentId: cap.agentId,
    overseerId: record.task.overseerId,
    status: record.task.status,
    reviewsId: cap.reviewsId,
  };
}

/** Returns the holders of a task and its ancestors, beginning with the task's holder. */
export async function holdersFrom(tx: ReadTx, capTaskId: string): Promise<string[]> {
  const holders: string[] = [];
  for (let id = capTaskId; id !== ""; id = parentIdOf(id)) {
    const task = await readCapTask(tx, id);
    if (task !== undefined) holders.push(task.agentId);
  }
  return holders;
}

/**
 * Returns the participants that wait for a task's result: the delegator and, if different, the holder of the parent
 * task.
 */
export async function waitersFor(
  tx: ReadTx,
  { capTaskId, delegatorId, reviewsId }: Pick<CapTask, "capTaskId" | "delegatorId" | "reviewsId">,
): Promise<string[]> {
  const parent = reviewsId === "" ? await readCapTask(tx, parentIdOf(capTaskId)) : undefined;
  return [...new Set([delegatorId, parent?.agentId ?? delegatorId])];
}

function toCapTask(row: Row): CapTask {
  return {
    capTaskId: row.cap_task_id,
    rootId: row.root_id,
    taskId: row.task_id,
    delegatorId: row.delegator_id,
    agentId: row.agent_id,
    reviewsId: row.reviews_id,
    noticeId: row.notice_id,
    createMs: row.create_ms,
  };
}
