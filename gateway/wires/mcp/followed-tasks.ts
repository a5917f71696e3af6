import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { Timers } from "@depute/core";
import type { FollowedTasks, McpTask } from "@depute/mcp";
import type { WireCall } from "../../edge/wire-call.ts";
import { nextState } from "./changes.ts";
import { isAbsent, toMcpTask } from "./mcp-task.ts";
import type { OwnClients } from "./methods.ts";

/**
 * Returns those tasks of the list that the caller may follow. A holder proof is valid for one call, so it authorizes
 * only the read of the first task. The gateway reads the other tasks in its own name. Of the other tasks, the
 * function returns those whose delegator is the holder of the proof.
 *
 * @throws the errors of the tasks service, except the error for an unknown task
 */
export async function followedTasks(
  { tasks }: Pick<OwnClients, "tasks">,
  taskIds: readonly string[],
  call: WireCall,
  timers: Timers,
): Promise<FollowedTasks<McpTask>> {
  const found: Task[] = [];
  for (const [i, taskId] of taskIds.entries()) {
    const options = i === 0 ? call.asCaller : call.aside;
    const task = await readOrAbsent(() => tasks.getTask({ taskId }, options));
    const isOwn = options === call.asCaller || task?.delegator === call.viewer;
    if (task !== undefined && isOwn) found.push(task);
  }
  const follow = async (
    first: Task,
    onTask: (taskId: string, task: McpTask) => void,
    signal: AbortSignal,
  ) => {
    let task = first;
    let shown = "";
    while (true) {
      const state = toMcpTask(task);
      const text = JSON.stringify(state);
      if (text !== shown) onTask(task.id, state);
      shown = text;
      if (task.endTime !== undefined) return waitForEnd(signal);
      task = await nextState({ tasks, timers }, task, call, signal);
    }
  };
  return {
    taskIds: found.map(({ id }) => id),
    async follow(onTask, signal) {
      try {
        await Promise.all(found.map((task) => follow(task, onTask, signal)));
      } catch (thrown) {
        if (!signal.aborted) throw thrown;
      }
    },
  };
}

async function readOrAbsent(read: () => Promise<{ task?: Task | undefined }>): Promise<Task | undefined> {
  try {
    return (await read()).task;
  } catch (thrown) {
    if (isAbsent(thrown)) return undefined;
    throw thrown;
  }
}

/** Waits until the client disconnects, because the end of the tasks does not end the stream. */
function waitForEnd(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
