import type { ReadTx, WriteTx } from "@depute/store";
import type { TaskEngine, TaskRecord } from "../../core/index.ts";
import type { TaskFacts } from "../rules/permit.ts";
import { parentIdOf } from "../rules/task-id.ts";

/** What CAP knows of a task beside what the engine does. */
export interface CapTask {
  /** CAP's dotted id. */
  readonly capTaskId: string;
  readonly rootId: string;
  /** The engine's id. */
  readonly taskId: string;
  readonly delegatorId: string;
  readonly agentId: string;
  /** The task whose review it is; empty for work of its own. */
  readonly reviewsId: string;
  /** The message that handed it over. */
  readonly noticeId: string;
  readonly createMs: number;
}

interface Row {
  cap_task_id: string;
  root_id: string;
  task_id: string;
  delegator_id: string;
  agent_id: string;
  reviews_id: string;
  notice_id: string;
  create_ms: number;
}

const COLUMNS = "cap_task_id, root_id, task_id, delegator_id, agent_id, reviews_id, notice_id, create_ms";

export async function insertCapTask(tx: WriteTx, task: CapTask): Promise<void> {
  await tx.run(`INSERT INTO cap_tasks (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`, [
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

/** Points a CAP task id at a new task of the engine, for the same agent or another one. */
export async function replaceCapTask(tx: WriteTx, task: Omit<CapTask, "rootId" | "createMs">): Promise<void> {
  await tx.run(
    `UPDATE cap_tasks SET task_id = ?, delegator_id = ?, agent_id = ?, reviews_id = ?, notice_id = ?
     WHERE cap_task_id = ?`,
    [task.taskId, task.delegatorId, task.agentId, task.reviewsId, task.noticeId, task.capTaskId],
  );
}

export async function readCapTask(tx: ReadTx, capTaskId: string): Promise<CapTask | undefined> {
  const row = await tx.get<Row>(`SELECT ${COLUMNS} FROM cap_tasks WHERE cap_task_id = ?`, [capTaskId]);
  return row && toCapTask(row);
}

/** The CAP task of a task of the engine's. */
export async function findCapTask(tx: ReadTx, taskId: string): Promise<CapTask | undefined> {
  const row = await tx.get<Row>(`SELECT ${COLUMNS} FROM cap_tasks WHERE task_id = ?`, [taskId]);
  return row && toCapTask(row);
}

/** The tasks that review a task, the newest last. */
export async function reviewsOf(tx: ReadTx, capTaskId: string): Promise<CapTask[]> {
  const rows = await tx.all<Row>(
    `SELECT ${COLUMNS} FROM cap_tasks WHERE reviews_id = ? AND reviews_id <> '' ORDER BY create_ms, cap_task_id`,
    [capTaskId],
  );
  return rows.map(toCapTask);
}

/** The tasks of a lineage in the order of their creation. */
export async function tasksOfLineage(tx: ReadTx, rootId: string, limit: number): Promise<CapTask[]> {
  const rows = await tx.all<Row>(
    `SELECT ${COLUMNS} FROM cap_tasks WHERE root_id = ? ORDER BY create_ms, cap_task_id LIMIT ?`,
    [rootId, limit],
  );
  return rows.map(toCapTask);
}

/** A CAP task with the engine's record of it. */
export interface Known {
  readonly cap: CapTask;
  readonly record: TaskRecord;
}

/** A task by CAP's id. */
export async function readKnown(
  tx: ReadTx,
  engine: Pick<TaskEngine, "find">,
  capTaskId: string,
): Promise<Known | undefined> {
  const cap = await readCapTask(tx, capTaskId);
  const record = cap && (await engine.find(tx, cap.taskId));
  return cap !== undefined && record !== undefined ? { cap, record } : undefined;
}

/** A task as the rules look at it. */
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

/** Who holds a task and those above it, its own holder first. */
export async function holdersFrom(tx: ReadTx, capTaskId: string): Promise<string[]> {
  const holders: string[] = [];
  for (let id = capTaskId; id !== ""; id = parentIdOf(id)) {
    const task = await readCapTask(tx, id);
    if (task !== undefined) holders.push(task.agentId);
  }
  return holders;
}

/** The participants that wait for a task's result: its delegator, and the parent's holder where that is another. */
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
