import { fromJson } from "@bufbuild/protobuf";
import { durationFromMs, ValueSchema } from "@bufbuild/protobuf/wkt";
import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import { ErrorReason, type Timers } from "@depute/core";
import type { McpTask, OwnTasks } from "@depute/mcp";
import { refusalIn } from "../../edge/fault.ts";
import type { WireCall } from "../../edge/wire-call.ts";
import { followedTasks } from "./followed-tasks.ts";
import { answerIn, isAbsent, questionKey, toMcpTask } from "./mcp-task.ts";
import type { OwnClients } from "./methods.ts";

/** Number of tasks on one page of a list. */
const PAGE_SIZE = 50;
/** Maximum duration of one call to the tasks service that waits for the end of a task. */
const WAIT = durationFromMs(25_000);

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
        const { question, questionTime } = (await read(taskId, call.aside)) ?? {};
        const key = question && questionKey(taskId, questionTime);
        const response = key !== undefined && Object.hasOwn(responses, key) ? responses[key] : undefined;
        if (question === undefined || key === undefined || response === undefined)
          return read(taskId, call.asCaller);
        const input = fromJson(ValueSchema, answerIn(response, question));
        try {
          return (await tasks.provideInput({ taskId, requestId: `mcp/${key}`, input }, call.asCaller)).task;
        } catch (thrown) {
          // Another answer came first, so this answer is ignored.
          if (ANSWERED.has(refusalIn(thrown).reason)) return read(taskId, call.aside);
          throw thrown;
        }
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
    ended: (taskId, call) =>
      unlessAbsent(async () => {
        let answer = await tasks.waitTask({ taskId, timeout: WAIT }, call.asCaller);
        while (answer.timedOut) answer = await tasks.waitTask({ taskId, timeout: WAIT }, call.aside);
        return answer.task;
      }),
  };
}

/** The error reasons of `provideInput` that mean that the question is no longer open. */
const ANSWERED: ReadonlySet<ErrorReason> = new Set([
  ErrorReason.REQUEST_ID_REUSED,
  ErrorReason.TASK_STATE_CONFLICT,
]);

async function unlessAbsent(read: () => Promise<Task | undefined>): Promise<McpTask | undefined> {
  try {
    const task = await read();
    return task && toMcpTask(task);
  } catch (thrown) {
    if (isAbsent(thrown)) return undefined;
    throw thrown;
  }
}
