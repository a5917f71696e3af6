import { type Advance, advance } from "./advance.ts";
import type { TaskRecord } from "./record.ts";
import { cancelled } from "./retry.ts";
import { isTerminal } from "./state-machine.ts";

/** Ends a task as cancelled. @throws DeputeError TASK_STATE_CONFLICT for a task that has ended */
export function cancelNow(
  record: TaskRecord,
  reason: string,
  nowMs: number,
  by: "delegator" | "parent" = "delegator",
): Advance {
  return advance(record, { payload: cancelled({ reason }), by }, nowMs);
}

/** Ends an open task as cancelled. Leaves a task in a terminal state unchanged. */
export function cancelIfOpen(...args: Parameters<typeof cancelNow>): Advance {
  const [record] = args;
  return isTerminal(record.task.status) ? { record, events: [] } : cancelNow(...args);
}
