import type { HandlerContext } from "@connectrpc/connect";
import type { WatchTasksRequest } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { pause } from "@depute/core";
import { follow, linkSignals } from "@depute/service";
import { withHeartbeats } from "../queue/with-heartbeats.ts";
import { FollowedTasks, type ListChange } from "../rules/followed-tasks.ts";
import { callerOf, type TasksContext } from "./context.ts";
import { listPage } from "./list.ts";

/**
 * Minimum pause between two reads of one watch, in milliseconds. One response contains all changes since the last read.
 */
const PAUSE_MS = 250;

/**
 * The minimum pause as a multiple of the last read's duration. A watch therefore spends at most a tenth of its time in
 * reads.
 */
const PAUSE_PER_READ = 9;

/** Number of poll intervals between two reads if no wake-up arrives. */
const IDLE_POLLS = 10;

interface Step {
  readonly number: number;
  readonly response: ListChange & { hasMore: boolean };
}

/**
 * Implements TaskService.WatchTasks. After each wake-up for the caller's tasks, the watch reads the first page of the
 * list. The response contains the differences from the previous read. A lost wake-up therefore delays a change, but the
 * watch still reports it.
 */
export async function* watchTasks(
  tasks: TasksContext,
  request: WatchTasksRequest,
  context: HandlerContext,
): AsyncGenerator<Step["response"], void, undefined> {
  const { clock, timers, delegatorWakeUps, engine, pollMs, streamHeartbeatMs, stopping } = tasks;
  const { principal } = await callerOf(tasks, context);
  const link = linkSignals(context.signal, stopping);
  const followed = new FollowedTasks();
  let pauseEndMs = 0;
  let hasMore = false;
  const read = async (number: number): Promise<Step[]> => {
    await pause(Math.max(0, pauseEndMs - clock.now()), timers, link.signal);
    if (link.signal.aborted) return [];
    const startMs = clock.now();
    const list = await engine.store.read((tx) => listPage(tx, principal, { ...request, pageToken: "" }));
    const endMs = clock.now();
    pauseEndMs = endMs + Math.max(PAUSE_MS, PAUSE_PER_READ * (endMs - startMs));
    const change = followed.update(list.tasks);
    hasMore = list.nextPageToken !== "";
    const isEmpty = change.tasks.length === 0 && change.removedTaskIds.length === 0;
    return isEmpty && number > 0 ? [] : [{ number: number + 1, response: { ...change, hasMore } }];
  };
  const steps = follow<Step, number>({
    read,
    position: ({ number }) => number,
    after: 0,
    wake: (listener) => delegatorWakeUps.on(principal, listener),
    pollMs: IDLE_POLLS * pollMs,
    timers,
    signal: link.signal,
  });
  try {
    for await (const step of withHeartbeats(steps, streamHeartbeatMs, timers)) {
      yield step?.response ?? { tasks: [], removedTaskIds: [], hasMore };
    }
  } finally {
    link.release();
  }
}
