import { create } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { type Task, TaskCancellationSchema, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { DeputeError, ErrorReason, toTimestamp } from "@depute/core";
import type { ReadTx } from "@depute/store";
import { inputFromContext } from "../contexts/contexts.ts";
import type { Eraser } from "../engine/eraser.ts";
import { watchTask } from "../engine/watch.ts";
import { wholeTask } from "../engine/whole-task.ts";
import { withHeartbeats } from "../queue/with-heartbeats.ts";
import { advance } from "../rules/advance.ts";
import { cancelIfOpen, cancelNow } from "../rules/cancel.ts";
import type { TaskRecord } from "../rules/record.ts";
import { isHeld, isTerminal, statusName } from "../rules/state-machine.ts";
import { isDelegator, isOverseer, requireVisible, taskNotFound } from "../rules/visibility.ts";
import { readEvents, readTask } from "../store/task-rows.ts";
import { provideInput, resumeTask, suspendTask, waitForEnd, waitTask } from "./commands.ts";
import {
  type Caller,
  callerOf,
  findVisible,
  type TaskName,
  type TasksContext,
  taskIdOf,
  taskIdWithin,
  watchOptions,
} from "./context.ts";
import { createOnce } from "./create.ts";
import { createTasks } from "./create-batch.ts";
import { lineageOf, treePage } from "./lineage.ts";
import { listPage } from "./list.ts";
import { moveDeadline } from "./move-deadline.ts";
import { purgeOrganization } from "./purge-organization.ts";
import { watchTasks } from "./watch-tasks.ts";

/** Handles the calls of TaskService, which delegators make. */
export function taskService(tasks: TasksContext, eraser: Eraser): ServiceImpl<typeof TaskService> {
  const { engine } = tasks;
  return {
    async createTask(request, context) {
      const { taskId, task } = await createOnce(tasks, request, context);
      if (request.wait === undefined) return { task: task ?? (await readWhole(tasks, taskId)) };
      const ended = await waitForEnd(tasks, taskId, request.wait, context);
      // The ended record lacks the input. A call that created the task has the input in memory; any other call must
      // read the task.
      if (ended === undefined || task === undefined) return { task: await readWhole(tasks, taskId) };
      return { task: task.input === undefined ? ended : { ...ended, input: task.input } };
    },

    async batchCreateTasks({ requests }, context) {
      return { outcomes: await createTasks(tasks, requests, context) };
    },

    delegateTask: (request, context) =>
      eventsOf(tasks, context, async () => {
        const { taskId, task, events } = await createOnce(tasks, request, context);
        if (request.cancelOnDisconnect) cancelOnDisconnect(tasks, taskId, context);
        const record = task === undefined ? await engine.find(taskId) : { task };
        if (record === undefined) throw taskNotFound(taskId);
        return { record, after: 0n, events };
      }),

    async getTask(request, context) {
      const caller = await callerOf(tasks, context);
      const read = (tx: ReadTx) => readWithInput(tx, tasks, request, caller);
      return { task: await tasks.contextMemory.using(() => engine.store.read(read)) };
    },

    async listTasks(request, context) {
      const caller = await callerOf(tasks, context);
      if (request.parentTaskId !== "" || request.rootTaskId !== "") return treePage(tasks, caller, request);
      return engine.store.read((tx) => listPage(tx, caller.principal, request));
    },

    watchTasks: (request, context) => watchTasks(tasks, request, context),

    watchTask: (request, context) =>
      eventsOf(tasks, context, async () => {
        const caller = await callerOf(tasks, context);
        const taskId = await taskIdOf(tasks, caller, request);
        return { record: await findVisible(tasks, caller, taskId), after: request.afterSequence };
      }),

    async moveTaskDeadline(request, context) {
      return { task: await wholeOf(tasks, await moveDeadline(tasks, request, context)) };
    },

    async suspendTask(request, context) {
      return { task: await wholeOf(tasks, await suspendTask(tasks, request, context)) };
    },

    async resumeTask(request, context) {
      const task = await wholeOf(tasks, await resumeTask(tasks, request, context));
      return { task, previousStatus: TaskStatus.SUSPENDED };
    },

    async provideInput(request, context) {
      return { task: await wholeOf(tasks, await provideInput(tasks, request, context)) };
    },

    purgeOrganization: (request, context) => purgeOrganization(tasks, eraser, request, context),
    async waitTask(request, context) {
      const { record, timedOut } = await waitTask(tasks, request, context);
      return { task: await wholeOf(tasks, record), timedOut };
    },

    async getLineage(request, context) {
      return { tasks: await lineageOf(tasks, request, context) };
    },

    async cancelTask(request, context) {
      const { reason, grace } = request;
      const caller = await callerOf(tasks, context);
      const taskId = await taskIdOf(tasks, caller, request);
      let previousStatus: TaskStatus = TaskStatus.UNSPECIFIED;
      let wasCancelled = false;
      const record = await engine.change(taskId, async (before, nowMs, tx) => {
        const { task } = before;
        requireVisible(caller, before);
        if (!isDelegator(caller, before)) {
          throw new DeputeError(
            ErrorReason.CALLER_NOT_ALLOWED,
            "only the delegator of a task may cancel the task",
          );
        }
        if (task.status === TaskStatus.CANCELLED) {
          const [last] = await readEvents(tx, taskId, task.lastSequence - 1n, 1);
          previousStatus = last?.previousStatus ?? TaskStatus.UNSPECIFIED;
          wasCancelled = true;
          return { record: before, events: [] };
        }
        if (isTerminal(task.status)) throw notCancellable(taskId, task.status);
        previousStatus = task.status;
        const graceMs = grace === undefined ? 0 : durationMs(grace);
        if (graceMs > 0 && isHeld(task.status)) {
          if (task.cancellation !== undefined) return { record: before, events: [] };
          const cancellation = create(TaskCancellationSchema, {
            reason,
            expireTime: toTimestamp(nowMs + graceMs),
          });
          const payload = { case: "cancellationRequested", value: cancellation } as const;
          return advance(before, { payload, by: "delegator" }, nowMs);
        }
        return cancelNow(before, reason || (task.cancellation?.reason ?? ""), nowMs);
      });
      return { task: await wholeOf(tasks, record), previousStatus, wasCancelled };
    },
  };
}

/** Reads a task that a caller may see, with its input, even if a context of the task holds the input. */
async function readWithInput(
  tx: ReadTx,
  { contextMemory, clock }: TasksContext,
  name: TaskName,
  caller: Caller,
): Promise<Task> {
  const record = await readTask(tx, await taskIdWithin(tx, caller.principal, name));
  if (record === undefined) throw taskNotFound(name.taskId || name.externalId);
  requireVisible(caller, record);
  const fullTask = await wholeTask(tx, record, !isDelegator(caller, record) || isOverseer(caller, record));
  const input = await inputFromContext(tx, contextMemory, record.task, caller, clock.now());
  return input === undefined ? fullTask : { ...fullTask, input };
}

/** Cancels a task if the caller's connection ends before the task has ended. */
function cancelOnDisconnect(
  { engine, stopping, log }: TasksContext,
  taskId: string,
  context: HandlerContext,
): void {
  const { signal } = context;
  const cancel = () => {
    if (stopping.aborted) return;
    engine
      .change(taskId, (before, nowMs) => cancelIfOpen(before, "the caller disconnected", nowMs))
      .catch((err: unknown) =>
        log.warn({ err, task: taskId }, "a task whose caller disconnected could not be cancelled"),
      );
  };
  if (signal.aborted) cancel();
  else signal.addEventListener("abort", cancel, { once: true });
}

/** The task whose events a stream yields, and the place where the stream starts. */
interface Followed {
  readonly record: Pick<TaskRecord, "task">;
  /** The stream starts after this sequence. */
  readonly after: bigint;
  /** The task's first events, if this call has stored them. */
  readonly events?: readonly TaskEvent[] | undefined;
}

/** Yields a task's events after a cursor. Yields heartbeats while no event arrives. */
async function* eventsOf(
  tasks: TasksContext,
  context: HandlerContext,
  begin: () => Promise<Followed>,
): AsyncGenerator<{ taskEvent: TaskEvent } | { heartbeat: { afterSequence: bigint } }, void, undefined> {
  const { streamHeartbeatMs, timers } = tasks;
  const { record, after, events = [] } = await begin();
  let afterSequence = after;
  for (const event of events) {
    afterSequence = event.sequence;
    yield { taskEvent: event };
  }
  const next = watchTask(watchOptions(tasks), record, afterSequence, context);
  for await (const event of withHeartbeats(next, streamHeartbeatMs, timers)) {
    if (event !== undefined) afterSequence = event.sequence;
    yield event === undefined ? { heartbeat: { afterSequence } } : { taskEvent: event };
  }
}

/** Returns the task of a record, with its input and result. */
export async function wholeOf({ engine }: TasksContext, record: TaskRecord): Promise<Task> {
  return engine.store.read((tx) => wholeTask(tx, record));
}

/** Reads a task with its input and result. @throws DeputeError TASK_NOT_FOUND */
export async function readWhole({ engine }: TasksContext, taskId: string) {
  return engine.store.read(async (tx) => {
    const record = await readTask(tx, taskId);
    if (record === undefined) throw taskNotFound(taskId);
    return wholeTask(tx, record);
  });
}

function notCancellable(task: string, status: TaskStatus): DeputeError {
  const name = statusName(status);
  return new DeputeError(ErrorReason.TASK_NOT_CANCELLABLE, `the task has already ended: it is ${name}`, {
    metadata: { task, status: name },
  });
}
