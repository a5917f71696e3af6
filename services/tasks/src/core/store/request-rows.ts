import { integer, type ReadTx, row, text, type WriteTx } from "@depute/store";

const CREATED_ROW = row({ task_id: text, draft_digest: text });
const REPORT_ROW = row({ digest: text, sequence: integer });
const COMMAND_ROW = row({ digest: text, task_id: text });

/** Finds the task that a delegator's request created, and the digest of the request. */
export async function findRequest(tx: ReadTx, delegator: string, requestId: string) {
  return tx.get(
    CREATED_ROW,
    "SELECT task_id, draft_digest FROM task_requests WHERE delegator = ? AND request_id = ?",
    [delegator, requestId],
  );
}

export async function insertRequest(
  tx: WriteTx,
  request: { delegator: string; requestId: string; draftDigest: string; taskId: string },
): Promise<void> {
  tx.send("INSERT INTO task_requests (delegator, request_id, draft_digest, task_id) VALUES (?, ?, ?, ?)", [
    request.delegator,
    request.requestId,
    request.draftDigest,
    request.taskId,
  ]);
}

/** Identifies a worker's report under one lease. */
export interface ReportKey {
  readonly taskId: string;
  readonly epoch: number;
  readonly requestId: string;
}

/** Finds the sequence of a worker's report, and the digest of the report. */
export async function findReport(tx: ReadTx, { taskId, epoch, requestId }: ReportKey) {
  return tx.get(
    REPORT_ROW,
    "SELECT digest, sequence FROM task_reports WHERE task_id = ? AND epoch = ? AND request_id = ?",
    [taskId, epoch, requestId],
  );
}

export async function insertReport(
  tx: WriteTx,
  { taskId, epoch, requestId }: ReportKey,
  digest: string,
  sequence: bigint,
): Promise<void> {
  tx.send("INSERT INTO task_reports (task_id, epoch, request_id, digest, sequence) VALUES (?, ?, ?, ?, ?)", [
    taskId,
    epoch,
    requestId,
    digest,
    sequence,
  ]);
}

/** Deletes the request ids of a task's reports, because no lease remains under which a worker could repeat a report. */
export async function deleteReports(tx: WriteTx, taskId: string): Promise<void> {
  tx.send("DELETE FROM task_reports WHERE task_id = ?", [taskId]);
}

/** Identifies a call that changes an existing task. */
export interface CommandKey {
  readonly caller: string;
  readonly requestId: string;
}

/** Finds the digest and task of an earlier call with this key. */
export async function findCommand(tx: ReadTx, { caller, requestId }: CommandKey) {
  return tx.get(
    COMMAND_ROW,
    "SELECT digest, task_id FROM task_commands WHERE caller = ? AND request_id = ?",
    [caller, requestId],
  );
}

export async function insertCommand(
  tx: WriteTx,
  { caller, requestId }: CommandKey,
  digest: string,
  taskId: string,
): Promise<void> {
  tx.send("INSERT INTO task_commands (caller, request_id, digest, task_id) VALUES (?, ?, ?, ?)", [
    caller,
    requestId,
    digest,
    taskId,
  ]);
}
