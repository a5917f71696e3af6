import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import { ErrorReason, type Timers } from "@depute/core";
import type { McpTask, OwnTasks } from "@depute/mcp";
import { refusalIn } from "../../edge/fault.ts";
import type { WireCall } from "../../edge/wire-call.ts";
import { WAIT_MS } from "./changes.ts";
import { followedTasks } from "./followed-tasks.ts";
import { isAbsent, toMcpTask } from "./mcp-task.ts";
import type { OwnClients } from "./methods.ts";
import { answeredUntilEnd, openQuestion, provideAnswer } from "./questions.ts";

/** Number of tasks on one page of a list. */
const PAGE_SIZE = 50;
const WAIT = durationFromMs(WAIT_MS);

/** Returns Depute's tasks as tasks of MCP. The id of an MCP task is the id of the task itself. */
export function ownTasks({ tasks }: OwnClients, timers: Timers): OwnTasks<WireCall> {
  const read = async (taskId: string, options: WireCall["asCaller"]) =>
    (await tasks.getTask({ taskId }, options)).task;
  return {
    get: (taskId, call) => unlessAbsent(() => read(taskId, call.asCaller)),
    async list(cursor, call) {
      const page = await tasks.listTasks({ pageSize: PAGE_SIZE, pageToken: cursor }, call.asCaller);
      return { tasks: page.tasks.map(toMcpTask), nextCursor: page.nextPageToken };
    },
    answer: (taskId, responses, call) =>
      unlessAbsent(async () => {
        // This read serves only to compute the key of the open question. It uses `aside`, because the holder proof is
        // valid for only one call: the main call below.
        const open = openQuestion(await read(taskId, call.aside));
        const response =
          open !== undefined && Object.hasOwn(responses, open.key) ? responses[open.key] : undefined;
        if (open === undefined || response === undefined) return read(taskId, call.asCaller);
        return provideAnswer(tasks, taskId, open, response, call);
      }),
    cancel: (taskId, call) =>
      unlessAbsent(async () => {
        try {
          return (await tasks.cancelTask({ taskId }, call.asCaller)).task;
        } catch (thrown) {
          if (refusalIn(thrown).reason === ErrorReason.TASK_NOT_CANCELLABLE) return read(taskId, call.aside);
          throw thrown;
        }
      }),
    listen: (taskIds, call) => followedTasks({ tasks }, taskIds, call, timers),
    ended: (taskId, call, elicit) =>
      unlessAbsent(async () => {
        if (elicit !== undefined) {
          const task = await read(taskId, call.asCaller);
          return task && answeredUntilEnd({ tasks, timers }, task, call, elicit);
        }
        let answer = await tasks.waitTask({ taskId, timeout: WAIT }, call.asCaller);
        while (answer.timedOut) answer = await tasks.waitTask({ taskId, timeout: WAIT }, call.aside);
        return answer.task;
      }),
  };
}

async function unlessAbsent(read: () => Promise<Task | undefined>): Promise<McpTask | undefined> {
  try {
    const task = await read();
    return task && toMcpTask(task);
  } catch (thrown) {
    if (isAbsent(thrown)) return undefined;
    throw thrown;
  }
}
