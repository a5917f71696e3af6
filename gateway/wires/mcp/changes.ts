import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import { pause, type Timers } from "@depute/core";
import type { WireCall } from "../../edge/wire-call.ts";
import type { OwnClients } from "./methods.ts";

/** Maximum duration in milliseconds of one call to the tasks service that waits for a change or the end of a task. */
export const WAIT_MS = 25_000;
/** Minimum number of milliseconds between two states of one task. */
const PAUSE_MS = 100;

export interface ChangeDeps {
  readonly tasks: OwnClients["tasks"];
  readonly timers: Timers;
}

/**
 * Waits for the next change of a task. Returns the task as it was if nothing changed in time. Reads with `aside`, so
 * the caller must already have read the task with its own credentials.
 *
 * @throws the errors of the tasks service
 */
export async function nextState(
  { tasks, timers }: ChangeDeps,
  task: Task,
  { aside }: Pick<WireCall, "aside">,
  signal: AbortSignal,
  maxMs = WAIT_MS,
): Promise<Task> {
  await pause(Math.min(PAUSE_MS, maxMs), timers, signal);
  const { id: taskId, lastSequence: afterSequence } = task;
  const timeout = durationFromMs(Math.max(0, Math.min(WAIT_MS, maxMs - PAUSE_MS)));
  const answer = await tasks.waitTask({ taskId, afterSequence, timeout }, { ...aside, signal });
  return answer.task ?? task;
}
