import { create } from "@bufbuild/protobuf";
import { TaskCancelledSchema } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import type { WriteTx } from "@depute/store";
import type { Engine } from "../engine/engine.ts";
import { advance } from "../rules/advance.ts";
import { isTerminal } from "../rules/state-machine.ts";

/** `TaskEngine.cancel`. */
export async function cancel(
  tx: WriteTx,
  engine: Engine,
  taskId: string,
  reason: string,
  ifOpen: boolean,
): Promise<void> {
  await engine.changeWithin(tx, taskId, (before, nowMs) => {
    if (ifOpen && isTerminal(before.task.status)) return { record: before, events: [] };
    const value = create(TaskCancelledSchema, { reason });
    return advance(before, { payload: { case: "cancelled", value }, by: "delegator" }, nowMs);
  });
}
