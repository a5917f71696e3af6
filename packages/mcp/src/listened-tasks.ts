import { admitAnswered } from "./admit-answered.ts";
import type { GateOptions } from "./gate.ts";
import type { Presentation } from "./presentation.ts";
import type { Declared } from "./rules/client-capabilities.ts";
import type { UpstreamConfig } from "./rules/read-config.ts";
import { Refusal } from "./rules/refusal.ts";
import { withTaskId } from "./rules/server-task.ts";
import type { TaskHandle } from "./task-handles.ts";
import type { FollowedTasks } from "./task-streams.ts";
import type { Upstream } from "./upstream.ts";

type Json = Record<string, unknown>;

/** A task to which a client listens. */
export interface ListenedTask {
  /** The id under which the client knows the task. */
  readonly id: string;
  readonly handle: TaskHandle;
}

export interface ListenedTasksOptions {
  readonly upstream: Upstream;
  readonly config: UpstreamConfig;
  readonly gate: GateOptions;
  readonly presentation: Presentation | undefined;
  /** The capabilities that the client declared with the request. */
  readonly declared: Declared | undefined;
  /** Whether the client's token still grants the capabilities that a task needs. */
  readonly isGranted: (rights: TaskHandle["rights"]) => Promise<boolean>;
}

/**
 * Listens to tasks of the server. The client sees only the tasks that the server acknowledges.
 *
 * @throws UpstreamError if the server cannot be reached, or refuses
 */
export async function followTasks(
  tasks: readonly ListenedTask[],
  options: ListenedTasksOptions,
): Promise<FollowedTasks<Json>> {
  const { upstream, isGranted } = options;
  const byOwnId = new Map(tasks.map((task) => [task.handle.taskId, task]));
  const stop = new AbortController();
  /** States that arrived before the client's stream began. */
  const early: Json[] = [];
  let onState = (state: Json) => {
    if (early.length < tasks.length * 2) early.push(state);
  };
  const listen = await upstream.listenTasks([...byOwnId.keys()], (state) => onState(state), stop.signal);
  const shown = listen.taskIds.flatMap((ownId) => byOwnId.get(ownId)?.id ?? []);
  if (shown.length === 0) stop.abort();
  return {
    taskIds: shown,
    async follow(onTask, signal) {
      const show = async (state: Json) => {
        const task = byOwnId.get(String(state.taskId));
        if (task === undefined || !(await isGranted(task.handle.rights))) return;
        onTask(task.id, withTaskId("tasks/get", await withoutForbiddenAsks(state, options), task.id));
      };
      // This chain of promises sends the states in the order of their arrival.
      let last = Promise.resolve();
      const failed = Promise.withResolvers<never>();
      onState = (state) => {
        last = last.then(() => show(state)).catch((thrown) => failed.reject(thrown));
      };
      early.forEach(onState);
      signal.addEventListener("abort", () => stop.abort(), { once: true });
      if (signal.aborted) stop.abort();
      try {
        await Promise.race([listen.ended, failed.promise]);
        await last;
      } finally {
        stop.abort();
      }
    },
  };
}

export const NO_TASKS: FollowedTasks<Json> = { taskIds: [], follow: async () => {} };

/**
 * Returns the state of a task. If the client may not get the server's questions, they are left out. `tasks/get` then
 * returns the refusal.
 */
async function withoutForbiddenAsks(
  state: Json,
  { gate, config: { map }, presentation, declared }: ListenedTasksOptions,
): Promise<Json> {
  const { inputRequests, ...rest } = state;
  if (inputRequests === undefined) return state;
  try {
    const asked = { resultType: "input_required", inputRequests };
    await admitAnswered(asked, { gate, map, presentation, declared: declared ?? {} });
    return state;
  } catch (thrown) {
    if (thrown instanceof Refusal) return rest;
    throw thrown;
  }
}
