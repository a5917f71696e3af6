import type { HandlerContext } from "@connectrpc/connect";
import { MAX_DURATION_MS, objectOf, workOf } from "@depute/asp";
import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { type WaitOptions, waitFor } from "@depute/service";
import type { TaskEngine } from "../../core/index.ts";
import type { SessionEngine } from "../engine/engine.ts";
import { findWork } from "../store/work-rows.ts";

/** The dependencies of a watch. */
export interface WorkWatching extends WaitOptions {
  readonly engine: SessionEngine;
  readonly tasks: Pick<TaskEngine, "watch">;
}

interface Place {
  readonly sessionId: string;
  readonly delegationId: string;
}

/**
 * Yields the events of a delegation's task, from the time when the task exists. Yields nothing if the delegation gets
 * no task.
 */
export async function* watchWork(
  sessions: WorkWatching,
  place: Place,
  after: bigint,
  context: Pick<HandlerContext, "signal" | "timeoutMs">,
): AsyncGenerator<TaskEvent, void, undefined> {
  const { tasks } = sessions;
  const taskId = await taskOf(sessions, place, context);
  if (taskId !== undefined) yield* tasks.watch(taskId, after, context);
}

/**
 * Waits until a delegation's task exists.
 *
 * @returns undefined if the delegation gets no task, or if the watcher has left
 */
async function taskOf(
  { engine, ...waiting }: WorkWatching,
  { sessionId, delegationId }: Place,
  context: Pick<HandlerContext, "signal" | "timeoutMs">,
): Promise<string | undefined> {
  const change = await waitFor(
    waiting,
    sessionId,
    MAX_DURATION_MS,
    context,
    async (): Promise<{ readonly taskId?: string } | undefined> => {
      const session = await engine.find(sessionId);
      const work = await engine.store.read((tx) => findWork(tx, sessionId, delegationId));
      if (work !== undefined && work.taskId !== "") return { taskId: work.taskId };
      const delegation = session && objectOf(session.session, delegationId);
      if (session === undefined || delegation === undefined) return {};
      const state = workOf(session.session, delegation);
      const isSeenTo = work !== undefined && work.due === 0;
      return state === "over" || (state !== "asked" && isSeenTo) ? {} : undefined;
    },
  );
  return change?.taskId;
}
