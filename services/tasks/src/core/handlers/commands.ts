import { create } from "@bufbuild/protobuf";
import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import {
  TaskInputProvidedSchema,
  TaskResumedSchema,
  TaskSuspensionRequestedSchema,
} from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { type Task, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import {
  type ProvideInputRequest,
  ProvideInputRequestSchema,
  type ResumeTaskRequest,
  ResumeTaskRequestSchema,
  type SuspendTaskRequest,
  type WaitTaskRequest,
} from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { DeputeError, ErrorReason, invalid, requestIdReused } from "@depute/core";
import { messageDigest, waitFor } from "@depute/service";
import type { ReadTx } from "@depute/store";
import type { Decide } from "../engine/engine.ts";
import { changeSpend } from "../engine/spend.ts";
import { advance } from "../rules/advance.ts";
import { checkMessage, isOfContext } from "../rules/message.ts";
import type { TaskRecord } from "../rules/record.ts";
import { isTerminal, statusName } from "../rules/state-machine.ts";
import { checkValue, MAX_ANSWER_BYTES, MAX_ANSWERS_BYTES } from "../rules/values.ts";
import { isDelegator, requireVisible } from "../rules/visibility.ts";
import { findCommand, insertCommand } from "../store/request-rows.ts";
import { insertProvidedInput, measureProvidedInputs } from "../store/work-rows.ts";
import { type Caller, callerOf, findVisible, type TasksContext, taskIdOf, watchOptions } from "./context.ts";

/** The default wait of WaitTask, milliseconds. */
const DEFAULT_WAIT_MS = 20_000;

/** Requests the suspension of a task. A repeated request, or a request for a suspended task, changes nothing. */
export async function suspendTask(tasks: TasksContext, request: SuspendTaskRequest, context: HandlerContext) {
  const caller = await callerOf(tasks, context);
  const taskId = await taskIdOf(tasks, caller, request);
  return tasks.engine.change(taskId, (before, nowMs) => {
    requireOwn(caller, before);
    const { status, suspensionRequest } = before.task;
    if (status === TaskStatus.SUSPENDED || suspensionRequest !== undefined) {
      return { record: before, events: [] };
    }
    const value = create(TaskSuspensionRequestedSchema, { reason: request.reason });
    return advance(before, { payload: { case: "suspensionRequested", value }, by: "delegator" }, nowMs);
  });
}

/** Resumes a suspended task. */
export async function resumeTask(tasks: TasksContext, request: ResumeTaskRequest, context: HandlerContext) {
  const { budget } = request;
  const caller = await callerOf(tasks, context);
  const taskId = await taskIdOf(tasks, caller, request);
  const digest = messageDigest(ResumeTaskRequestSchema, request);
  return command(
    tasks,
    caller,
    taskId,
    { requestId: request.requestId, digest },
    async (before, nowMs, tx) => {
      const { id, status, checkpointAvailable } = before.task;
      if (status !== TaskStatus.SUSPENDED) throw notResumable(id, status);
      const spend = request.spend && (await changeSpend(tx, before.task, request.spend));
      const value = create(TaskResumedSchema, {
        fromCheckpoint: checkpointAvailable,
        ...(budget && { budget }),
        ...(spend && { spend }),
      });
      return advance(before, { payload: { case: "resumed", value }, by: "delegator" }, nowMs);
    },
  );
}

/** Stores the delegator's answer to the worker's question. */
export async function provideInput(
  tasks: TasksContext,
  request: ProvideInputRequest,
  context: HandlerContext,
) {
  const { input, message } = request;
  if (input === undefined) throw invalid("input", "is required");
  checkValue(input, "input", MAX_ANSWER_BYTES);
  if (message !== undefined) checkMessage(message, "message", MAX_ANSWER_BYTES);
  const caller = await callerOf(tasks, context);
  const taskId = await taskIdOf(tasks, caller, request);
  const digest = messageDigest(ProvideInputRequestSchema, request);
  return command(
    tasks,
    caller,
    taskId,
    { requestId: request.requestId, digest },
    async (before, nowMs, tx) => {
      if (message !== undefined && !isOfContext(message, before.task)) {
        throw invalid(
          "message.context_id",
          `is not the task's context, which is ${before.task.correlationId}`,
        );
      }
      const value = create(TaskInputProvidedSchema, { input, ...(message && { message }) });
      const advanced = advance(before, { payload: { case: "inputProvided", value }, by: "delegator" }, nowMs);
      const { number, bytes } = await measureProvidedInputs(tx, taskId);
      // Counts earlier answers with their stored size, and reserves MAX_ANSWER_BYTES for this answer.
      if (bytes > MAX_ANSWERS_BYTES - MAX_ANSWER_BYTES) throw tooMuchInput();
      await insertProvidedInput(tx, taskId, number + 1, { input, message });
      return advanced;
    },
  );
}

/** Waits for an event after a cursor, or for the task's end. */
export async function waitTask(tasks: TasksContext, request: WaitTaskRequest, context: HandlerContext) {
  const caller = await callerOf(tasks, context);
  const taskId = await taskIdOf(tasks, caller, request);
  const visible = await findVisible(tasks, caller, taskId);
  const { afterSequence, timeout } = request;
  if (afterSequence !== undefined && afterSequence > visible.task.lastSequence) {
    throw invalid("after_sequence", `is beyond the newest event, which is ${visible.task.lastSequence}`);
  }
  let record = visible;
  const isDone = (current: TaskRecord) => {
    record = current;
    const { status, lastSequence } = current.task;
    return isTerminal(status) || (afterSequence !== undefined && lastSequence > afterSequence);
  };
  const endedTask = await waitForTask(tasks, taskId, timeout, context, isDone);
  return { record, timedOut: !endedTask };
}

/** Waits until a task fulfils a condition. Returns false if the timeout ended the wait. */
export async function waitForTask(
  tasks: TasksContext,
  taskId: string,
  timeout: Duration | undefined,
  context: HandlerContext,
  isDone: (record: TaskRecord) => boolean,
): Promise<boolean> {
  const waitMs = timeout === undefined ? DEFAULT_WAIT_MS : durationMs(timeout);
  const changed = await waitFor(watchOptions(tasks), taskId, waitMs, context, async () => {
    const record = await tasks.engine.find(taskId);
    return record === undefined || isDone(record) ? true : undefined;
  });
  return changed === true;
}

/**
 * Waits for a task's end.
 *
 * @returns the ended task, with its output and without its input, if the task ended in this process during the wait;
 * otherwise undefined
 */
export async function waitForEnd(
  tasks: TasksContext,
  taskId: string,
  wait: Duration,
  context: HandlerContext,
): Promise<Task | undefined> {
  const { engine, taskWakeUps } = tasks;
  let ended: TaskRecord | undefined;
  const wakeUps = {
    on: (id: string, wake: () => void) => {
      const stop = engine.ends.on(id, (record) => {
        ended = record;
        wake();
      });
      if (!engine.isShared) return stop;
      const stopBus = taskWakeUps.on(id, wake);
      return () => {
        stop();
        stopBus();
      };
    },
  };
  const look = async () => ended ?? (await engine.ended(taskId));
  await waitFor({ ...watchOptions(tasks), wakeUps }, taskId, durationMs(wait), context, look);
  return ended?.task;
}

interface Once {
  /** The request id: a repeated call with this id has no second effect. If empty, every call has an effect. */
  readonly requestId: string;
  /** Digest of the whole request. */
  readonly digest: string;
}

/**
 * Changes a task, once for each request id of the caller.
 *
 * @param requireRight checks the caller's right; if absent, only the task's delegator may change the task
 * @throws DeputeError TASK_NOT_FOUND, CALLER_NOT_ALLOWED, REQUEST_ID_REUSED, and the errors of `decide`
 */
export async function command(
  { engine }: TasksContext,
  caller: Caller,
  taskId: string,
  { requestId, digest }: Once,
  decide: Decide,
  requireRight: (caller: Caller, record: TaskRecord) => void = requireOwn,
): Promise<TaskRecord> {
  const key = { caller: caller.principal, requestId };
  return engine.change(taskId, async (before, nowMs, tx) => {
    requireRight(caller, before);
    if (await isAnswered(tx, caller, { requestId, digest })) return { record: before, events: [] };
    if (requestId !== "") await insertCommand(tx, key, digest, taskId);
    return decide(before, nowMs, tx);
  });
}

/**
 * Returns whether the service has already answered a call with this request id. False for an empty request id.
 *
 * @throws DeputeError REQUEST_ID_REUSED if the earlier call had other content
 */
export async function isAnswered(
  tx: ReadTx,
  { principal }: Pick<Caller, "principal">,
  { requestId, digest }: Once,
): Promise<boolean> {
  const earlierCommand =
    requestId === "" ? undefined : await findCommand(tx, { caller: principal, requestId });
  if (earlierCommand === undefined) return false;
  if (earlierCommand.digest === digest) return true;
  throw requestIdReused(requestId);
}

/**
 * Requires that the caller is the task's delegator.
 *
 * @throws DeputeError TASK_NOT_FOUND, or CALLER_NOT_ALLOWED if the caller is the delegate or the overseer
 */
export function requireOwn(caller: Caller, record: TaskRecord): void {
  requireVisible(caller, record);
  if (isDelegator(caller, record)) return;
  throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "only the delegator of a task may change the task");
}

function notResumable(task: string, status: TaskStatus): DeputeError {
  const name = statusName(status);
  return new DeputeError(ErrorReason.TASK_NOT_RESUMABLE, `the task is ${name}, not suspended`, {
    metadata: { task, status: name },
  });
}

function tooMuchInput(): DeputeError {
  const message = `all answers of a task together must be at most ${MAX_ANSWERS_BYTES} bytes`;
  return new DeputeError(ErrorReason.LIMIT_EXCEEDED, message, {
    metadata: { limit: "provided_inputs.bytes", max: String(MAX_ANSWERS_BYTES) },
    violations: [{ field: "input", description: message }],
  });
}
