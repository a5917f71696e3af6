import type { ReadTx, WriteTx } from "@depute/store";

/** The task that a delegator's request created, and the digest of what it asked for. */
export async function findRequest(tx: ReadTx, delegator: string, requestId: string) {
  return tx.get<{ task_id: string; draft_digest: string }>(
    "SELECT task_id, draft_digest FROM task_requests WHERE delegator = ? AND request_id = ?",
    [delegator, requestId],
  );
}

export async function insertRequest(
  tx: WriteTx,
  request: { delegator: string; requestId: string; draftDigest: string; taskId: string },
): Promise<void> {
  await tx.run(
    "INSERT INTO task_requests (delegator, request_id, draft_digest, task_id) VALUES (?, ?, ?, ?)",
    [request.delegator, request.requestId, request.draftDigest, request.taskId],
  );
}

/** Names a worker's report, under one lease. */
export interface ReportKey {
  readonly taskId: string;
  readonly epoch: number;
  readonly requestId: string;
}

/** Where a worker's report stands in the log, and the digest of what it said. */
export async function findReport(tx: ReadTx, { taskId, epoch, requestId }: ReportKey) {
  return tx.get<{ digest: string; sequence: number }>(
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
  await tx.run(
    "INSERT INTO task_reports (task_id, epoch, request_id, digest, sequence) VALUES (?, ?, ?, ?, ?)",
    [taskId, epoch, requestId, digest, sequence],
  );
}

/** Forgets the reports of leases that are over: none of them can be repeated. */
export async function deleteReports(tx: WriteTx, taskId: string): Promise<void> {
  await tx.run("DELETE FROM task_reports WHERE task_id = ?", [taskId]);
}

/** Names a call that changes a task that is there. */
export interface CommandKey {
  readonly caller: string;
  readonly requestId: string;
}

/** The digest of what a call of this name asked for, and of which task. */
export async function findCommand(tx: ReadTx, { caller, requestId }: CommandKey) {
  return tx.get<{ digest: string; task_id: string }>(
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
  await tx.run("INSERT INTO task_commands (caller, request_id, digest, task_id) VALUES (?, ?, ?, ?)", [
    caller,
    requestId,
    digest,
    taskId,
  ]);
}
