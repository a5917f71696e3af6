import { fromBinary } from "@bufbuild/protobuf";
import { type TaskEvent, TaskEventSchema } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { encode } from "@depute/core/encode";
import type { ReadTx, WriteTx } from "@depute/store";

/** Appends events to logs, in their order. */
export async function insertEvents(tx: WriteTx, events: readonly TaskEvent[]): Promise<void> {
  if (events.length === 0) return;
  const rows = events.map(() => "(?, ?, ?)").join(", ");
  await tx.run(
    `INSERT INTO task_events (task_id, sequence, event) VALUES ${rows}`,
    events.flatMap((event) => [event.taskId, event.sequence, encode(TaskEventSchema, event)]),
  );
}

/** Up to `limit` events of a task's log after a sequence, in order. */
export async function readEvents(
  tx: ReadTx,
  taskId: string,
  after: bigint,
  limit: number,
): Promise<TaskEvent[]> {
  const rows = await tx.all<{ event: Uint8Array }>(
    "SELECT event FROM task_events WHERE task_id = ? AND sequence > ? ORDER BY sequence LIMIT ?",
    [taskId, after, limit],
  );
  return rows.map((row) => fromBinary(TaskEventSchema, row.event));
}
