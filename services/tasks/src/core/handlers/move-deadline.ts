import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { TaskDeadlineMovedSchema } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import {
  type MoveTaskDeadlineRequest,
  MoveTaskDeadlineRequestSchema,
} from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { fromTimestamp, invalid, parseTime, toTimestamp } from "@depute/core";
import { messageDigest } from "@depute/service";
import { advance } from "../rules/advance.ts";
import { MAX_TOTAL_MS, movedLimits } from "../rules/limits.ts";
import type { TaskRecord } from "../rules/record.ts";
import { readTask } from "../store/task-rows.ts";
import { command } from "./commands.ts";
import { callerOf, callOptions, peekVisible, type TasksContext, taskIdOf } from "./context.ts";

/**
 * Moves a task's deadline. A repeated call with the same deadline changes nothing.
 *
 * @returns the record of the task after the call
 */
export async function moveDeadline(
  tasks: TasksContext,
  request: MoveTaskDeadlineRequest,
  context: HandlerContext,
): Promise<TaskRecord> {
  const { requestId, expireTime } = request;
  if (expireTime === undefined) throw invalid("expire_time", "is required");
  const expireMs = fromTimestamp(expireTime);
  const caller = await callerOf(tasks, context);
  const taskId = await taskIdOf(tasks, caller, request);
  const { task } = await peekVisible(tasks, caller, taskId);
  const contractMs = await contractDeadline(tasks, task.contractId, context);
  if (contractMs !== undefined && expireMs > contractMs) throw tooLate("the deadline of the task's contract");
  const digest = messageDigest(MoveTaskDeadlineRequestSchema, request);
  return command(tasks, caller, taskId, { requestId, digest }, async (before, nowMs, tx) => {
    const { createTime, parentTaskId, expireTime: currentExpiry } = before.task;
    const createMs = createTime === undefined ? nowMs : fromTimestamp(createTime);
    if (expireMs <= nowMs) throw invalid("expire_time", "must be in the future");
    if (expireMs - createMs > MAX_TOTAL_MS) throw tooLate("30 days after the task's creation");
    const parent = parentTaskId === "" ? undefined : await readTask(tx, parentTaskId);
    const bound = parent?.task.expireTime;
    if (bound !== undefined && expireMs > fromTimestamp(bound))
      throw tooLate("the deadline of the parent task");
    if (currentExpiry !== undefined && fromTimestamp(currentExpiry) === expireMs)
      return { record: before, events: [] };
    const value = create(TaskDeadlineMovedSchema, {
      expireTime: toTimestamp(expireMs),
      limits: movedLimits(before.task, expireMs - createMs),
    });
    return advance(before, { payload: { case: "deadlineMoved", value }, by: "delegator" }, nowMs);
  });
}

async function contractDeadline(
  tasks: TasksContext,
  contractId: string,
  context: HandlerContext,
): Promise<number | undefined> {
  if (contractId === "") return undefined;
  const { contracts } = tasks.dependencies;
  const { contract } = await contracts.getContract({ contractId }, callOptions(tasks, context));
  const text = contract?.constraints?.deadline ?? "";
  return text === "" ? undefined : parseTime(text);
}

function tooLate(boundName: string) {
  return invalid("expire_time", `must not be later than ${boundName}`);
}
