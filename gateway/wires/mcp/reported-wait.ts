import { type Task, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { Clock } from "@depute/core";
import type { CallNotices } from "@depute/mcp";
import type { WireCall } from "../../edge/wire-call.ts";
import { type ChangeDeps, nextState } from "./changes.ts";
import { messageOf } from "./mcp-task.ts";
import { statusWord } from "./methods.ts";

/** Log levels of states that a person should notice. (RFC 5424 6.2.1) All other states have the level `info`. */
const LEVELS: ReadonlyMap<TaskStatus, "notice" | "warning"> = new Map([
  [TaskStatus.INPUT_REQUIRED, "notice"],
  [TaskStatus.CANCELLED, "notice"],
  [TaskStatus.REJECTED, "warning"],
  [TaskStatus.FAILED, "warning"],
  [TaskStatus.EXPIRED, "warning"],
  [TaskStatus.REVOKED, "warning"],
]);

/**
 * Waits for the end of a task, and sends each of its states to the client: its progress as MCP progress, and its status
 * as a log message.
 *
 * @param task the task, which the caller has read with its own credentials
 * @returns the task at its end, or as it was when `waitMs` milliseconds had passed or the tasks service failed. A
 *   failure is no error, because the caller of `delegate` would not learn the id of its task.
 */
export async function reportedWait(
  deps: ChangeDeps & { readonly clock: Clock },
  task: Task,
  waitMs: number,
  call: WireCall,
  notices: CallNotices,
): Promise<Task> {
  const until = deps.clock.now() + waitMs;
  let shown = "";
  let current = task;
  while (true) {
    const message = messageOf(current);
    if (message !== shown) {
      const data = { task: current.id, status: statusWord(current), message };
      notices.log(LEVELS.get(current.status) ?? "info", data);
    }
    shown = message;
    if (current.progress !== undefined) notices.progress(progressOf(current.progress));
    const leftMs = until - deps.clock.now();
    if (current.endTime !== undefined || leftMs <= 0) return current;
    try {
      current = await nextState(deps, current, call, call.signal, leftMs);
    } catch {
      return current;
    }
  }
}

function progressOf({ processed, total, message }: NonNullable<Task["progress"]>) {
  return {
    progress: processed,
    ...(total > 0 && { total }),
    ...(message !== "" && { message }),
  };
}
