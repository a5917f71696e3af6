import { type Task, TaskQuestionKind, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { fromTimestamp } from "@depute/core";
import { integer, type ReadTx, row, type SqlValue, text, type WriteTx } from "@depute/store";
import { deleteWebhooks } from "./webhook-rows.ts";

const PLACE_ROW = row({ task_id: text, update_ms: integer });
const SEQUENCE_ROW = row({ sequence: integer });
const NUMBER_ROW = row({ number: integer });
const WEBHOOKS_ROW = row({ has_webhooks: integer });

/** The highest total that a list reports. The query stops counting at this number, so a long list costs little. */
const MAX_COUNTED = 100_000;

export async function insertConversation(tx: WriteTx, task: Task): Promise<void> {
  await tx.run(
    `INSERT INTO conversations
       (task_id, delegator, agent_id, correlation_id, status, awaits_authorization, update_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
    [
      task.id,
      task.delegator,
      task.agentId,
      task.correlationId,
      task.status,
      awaitsAuthorization(task),
      updateMs(task),
    ],
  );
}

/** @returns whether the conversation has webhooks, or had webhooks before */
export async function updateConversation(tx: WriteTx, task: Task): Promise<boolean> {
  const updated = await tx.get(
    WEBHOOKS_ROW,
    `UPDATE conversations SET status = ?, awaits_authorization = ?, update_ms = ?
     WHERE task_id = ? RETURNING has_webhooks`,
    [task.status, awaitsAuthorization(task), updateMs(task), task.id],
  );
  return updated?.has_webhooks === 1;
}

/** 1 for a task whose worker waits for an authorization, otherwise 0. */
function awaitsAuthorization({ status, question }: Task): 0 | 1 {
  const isOpen = status === TaskStatus.INPUT_REQUIRED;
  return isOpen && question?.kind === TaskQuestionKind.AUTHORIZATION ? 1 : 0;
}

function updateMs({ updateTime }: Task): number {
  return updateTime === undefined ? 0 : fromTimestamp(updateTime);
}

/** The tables that store positions in a task's log: of events with messages, or of preliminary results. */
export type PlacesTable = "conversation_messages" | "conversation_partials";

/** Stores the position of an event in a task's log. */
export async function insertPlace(
  tx: WriteTx,
  table: PlacesTable,
  taskId: string,
  sequence: bigint,
): Promise<void> {
  await tx.run(`INSERT INTO ${table} (task_id, sequence) VALUES (?, ?)`, [taskId, sequence]);
}

/** Returns the sequences of a task's newest events from `table`, newest first. */
export async function newestPlaces(
  tx: ReadTx,
  table: PlacesTable,
  taskId: string,
  limit: number,
): Promise<bigint[]> {
  const rows = await tx.all(
    SEQUENCE_ROW,
    `SELECT sequence FROM ${table} WHERE task_id = ? ORDER BY sequence DESC LIMIT ?`,
    [taskId, limit],
  );
  return rows.map(({ sequence }) => BigInt(sequence));
}

export async function deleteConversation(tx: WriteTx, taskId: string): Promise<void> {
  await deleteWebhooks(tx, taskId);
  await tx.run("DELETE FROM conversation_messages WHERE task_id = ?", [taskId]);
  await tx.run("DELETE FROM conversation_partials WHERE task_id = ?", [taskId]);
  await tx.run("DELETE FROM conversations WHERE task_id = ?", [taskId]);
}

/** The filters of a list of conversations. */
export interface ConversationFilter {
  readonly delegator: string;
  readonly agentId: string;
  /** The id of an A2A context; empty for every context. */
  readonly correlationId: string;
  /** Empty for every status. */
  readonly statuses: readonly TaskStatus[];
  /** Whether the worker waits for an authorization; undefined selects both cases. */
  readonly awaitsAuthorization: boolean | undefined;
  /** The earliest time of the last change, in epoch milliseconds; undefined for no bound. */
  readonly fromMs: number | undefined;
}

/** A position in a list that is ordered by last change, latest first. */
export interface ConversationPlace {
  readonly taskId: string;
  readonly updateMs: number;
}

/** Returns up to `limit` conversations after a position, the latest change first. */
export async function listConversations(
  tx: ReadTx,
  filter: ConversationFilter,
  after: ConversationPlace | undefined,
  limit: number,
): Promise<ConversationPlace[]> {
  const { where, params } = clauseOf(filter);
  const position = after === undefined ? "" : "AND (update_ms, task_id) < (?, ?)";
  const rows = await tx.all(
    PLACE_ROW,
    `SELECT task_id, update_ms FROM conversations WHERE ${where} ${position}
     ORDER BY update_ms DESC, task_id DESC LIMIT ?`,
    [...params, ...(after === undefined ? [] : [after.updateMs, after.taskId]), limit],
  );
  return rows.map((each) => ({ taskId: each.task_id, updateMs: each.update_ms }));
}

/** The number of conversations that pass the filters, counted up to MAX_COUNTED. */
export async function countConversations(tx: ReadTx, filter: ConversationFilter): Promise<number> {
  const { where, params } = clauseOf(filter);
  const counted = await tx.get(
    NUMBER_ROW,
    `SELECT count(*) AS number FROM (SELECT 1 FROM conversations WHERE ${where} LIMIT ?) AS some`,
    [...params, MAX_COUNTED],
  );
  return counted?.number ?? 0;
}

function clauseOf(filter: ConversationFilter) {
  const { delegator, agentId, correlationId, statuses, awaitsAuthorization: awaits, fromMs } = filter;
  const terms: [string, readonly SqlValue[]][] = [["delegator = ? AND agent_id = ?", [delegator, agentId]]];
  if (correlationId !== "") terms.push(["correlation_id = ?", [correlationId]]);
  if (statuses.length > 0) terms.push([`status IN (${statuses.map(() => "?").join(", ")})`, statuses]);
  if (awaits !== undefined) terms.push(["awaits_authorization = ?", [awaits ? 1 : 0]]);
  if (fromMs !== undefined) terms.push(["update_ms >= ?", [fromMs]]);
  return {
    where: terms.map(([term]) => term).join(" AND "),
    params: terms.flatMap(([, values]) => [...values]),
  };
}
