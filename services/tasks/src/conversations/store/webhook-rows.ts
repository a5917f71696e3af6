import { integer, type ReadTx, row, text, type WriteTx } from "@depute/store";

/** A webhook of a conversation. */
export interface WebhookRow {
  readonly taskId: string;
  /** Unique within the task. */
  readonly id: string;
  readonly delegator: string;
  readonly url: string;
  /** The scheme of the header `Authorization`; empty for none. */
  readonly scheme: string;
  /** The webhook's token and credentials, sealed. */
  readonly sealed: string;
  /** The sequence of the newest event that the receiver accepted. */
  readonly sentSequence: number;
  /** Number of failed attempts to deliver the next event. */
  readonly attempts: number;
}

const WEBHOOK_ROW = row<WebhookRow>({
  taskId: text,
  id: text,
  delegator: text,
  url: text,
  scheme: text,
  sealed: text,
  sentSequence: integer,
  attempts: integer,
});
const COLUMNS = `task_id AS "taskId", id, delegator, url, scheme, sealed, sent_sequence AS "sentSequence", attempts`;
const NUMBER_ROW = row({ number: integer });
const NEXT_MS_ROW = row({ next_ms: integer });

/**
 * Records that a conversation has webhooks. Call this function before you read the task's newest event. Otherwise the
 * new webhook can miss a concurrent event.
 *
 * @returns false if the task is not a conversation
 */
export async function markWebhooks(tx: WriteTx, taskId: string): Promise<boolean> {
  const { changes } = await tx.run("UPDATE conversations SET has_webhooks = 1 WHERE task_id = ?", [taskId]);
  return changes > 0;
}

/** A new webhook. */
export type NewWebhook = Omit<WebhookRow, "attempts"> & {
  /** The sequence of the task's newest event. */
  readonly knownSequence: number;
  /** The earliest time of the first delivery, in epoch milliseconds. */
  readonly nextMs: number;
};

/** Writes a webhook. If the task has a webhook with this id, its `sent_sequence` stays and the other values change. */
export async function putWebhook(tx: WriteTx, webhook: NewWebhook): Promise<void> {
  await tx.run(
    `INSERT INTO conversation_webhooks
       (task_id, id, delegator, url, scheme, sealed, sent_sequence, known_sequence, attempts, next_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, ?)
     ON CONFLICT (task_id, id) DO UPDATE SET url = excluded.url, scheme = excluded.scheme,
       sealed = excluded.sealed, known_sequence = excluded.known_sequence, attempts = 0, next_ms = excluded.next_ms`,
    [
      webhook.taskId,
      webhook.id,
      webhook.delegator,
      webhook.url,
      webhook.scheme,
      webhook.sealed,
      webhook.sentSequence,
      webhook.knownSequence,
      webhook.nextMs,
    ],
  );
}

export async function findWebhook(tx: ReadTx, taskId: string, id: string): Promise<WebhookRow | undefined> {
  return tx.get(WEBHOOK_ROW, `SELECT ${COLUMNS} FROM conversation_webhooks WHERE task_id = ? AND id = ?`, [
    taskId,
    id,
  ]);
}

export async function countWebhooks(tx: ReadTx, taskId: string): Promise<number> {
  const counted = await tx.get(
    NUMBER_ROW,
    "SELECT count(*) AS number FROM conversation_webhooks WHERE task_id = ?",
    [taskId],
  );
  return counted?.number ?? 0;
}

/** Returns up to `limit` webhooks of a task whose ids follow `afterId`, in the order of their ids. */
export async function listWebhooks(
  tx: ReadTx,
  taskId: string,
  afterId: string,
  limit: number,
): Promise<WebhookRow[]> {
  return tx.all(
    WEBHOOK_ROW,
    `SELECT ${COLUMNS} FROM conversation_webhooks WHERE task_id = ? AND id > ? ORDER BY id LIMIT ?`,
    [taskId, afterId, limit],
  );
}

export async function deleteWebhook(tx: WriteTx, taskId: string, id: string): Promise<void> {
  await tx.run("DELETE FROM conversation_webhooks WHERE task_id = ? AND id = ?", [taskId, id]);
}

export async function deleteWebhooks(tx: WriteTx, taskId: string): Promise<void> {
  await tx.run("DELETE FROM conversation_webhooks WHERE task_id = ?", [taskId]);
}

/** Stores the sequence of a task's newest event in the rows of its webhooks. */
export async function noteEvent(tx: WriteTx, taskId: string, sequence: bigint): Promise<void> {
  await tx.run("UPDATE conversation_webhooks SET known_sequence = ? WHERE task_id = ?", [sequence, taskId]);
}

/**
 * Returns up to `limit` webhooks with a delivery that is due, the longest overdue first.
 *
 * @param except delegators whose webhooks the result omits
 */
export async function dueWebhooks(
  tx: ReadTx,
  nowMs: number,
  except: readonly string[],
  limit: number,
): Promise<WebhookRow[]> {
  const others = except.length === 0 ? "" : `AND delegator NOT IN (${except.map(() => "?").join(", ")})`;
  return tx.all(
    WEBHOOK_ROW,
    `SELECT ${COLUMNS} FROM conversation_webhooks
     WHERE sent_sequence < known_sequence AND next_ms <= ? ${others}
     ORDER BY next_ms, task_id, id LIMIT ?`,
    [nowMs, ...except, limit],
  );
}

/** Returns the first time after `nowMs` at which a delivery is due, in epoch milliseconds; undefined for none. */
export async function nextWebhook(tx: ReadTx, nowMs: number): Promise<number | undefined> {
  const found = await tx.get(
    NEXT_MS_ROW,
    `SELECT next_ms FROM conversation_webhooks WHERE sent_sequence < known_sequence AND next_ms > ?
     ORDER BY next_ms, task_id, id LIMIT 1`,
    [nowMs],
  );
  return found?.next_ms;
}

/** Records that the receiver accepted every event up to a sequence. */
export async function advanceWebhook(
  tx: WriteTx,
  { taskId, id }: WebhookRow,
  sentSequence: bigint,
  nextMs: number,
): Promise<void> {
  await tx.run(
    "UPDATE conversation_webhooks SET sent_sequence = ?, attempts = 0, next_ms = ? WHERE task_id = ? AND id = ?",
    [sentSequence, nextMs, taskId, id],
  );
}

export async function postponeWebhook(
  tx: WriteTx,
  { taskId, id }: WebhookRow,
  attempts: number,
  nextMs: number,
): Promise<void> {
  await tx.run("UPDATE conversation_webhooks SET attempts = ?, next_ms = ? WHERE task_id = ? AND id = ?", [
    attempts,
    nextMs,
    taskId,
    id,
  ]);
}
