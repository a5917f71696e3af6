import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { bareClient } from "../../tasks/bare-client.ts";

/**
 * Watches one task in a separate process. The argument is the address of the tasks service. The process answers a
 * question with `watchers` when so many watchers are open and each has the task's first event. It answers a question
 * with `processed` when each watcher has the progress with that number.
 */

export type Question = { taskId: string; watchers: number } | { processed: number };

/** `lastMs` is the time of the last arrival, in milliseconds since 1970. */
export interface Arrived {
  readonly lastMs: number;
}

const WATCHERS_OF_A_CONNECTION = 1_000;

const [address = ""] = process.argv.slice(2);
const clients: ReturnType<typeof bareClient>[] = [];
let watchers = 0;
let begun = 0;
let awaited = { processed: 0, arrived: 0 };
let onBegun = () => {};

interface Event {
  readonly taskEvent?: {
    readonly sequence: bigint;
    readonly payload: { readonly case?: string; readonly value?: { readonly processed?: number } };
  };
}

function watch(taskId: string): void {
  const number = Math.floor(watchers++ / WATCHERS_OF_A_CONNECTION);
  clients[number] ??= bareClient(TaskService, address, { ownConnection: true });
  const stream = clients[number]?.stream("WatchTask", { taskId });
  stream?.on("error", () => {});
  stream?.on("data", ({ taskEvent }: Event) => {
    if (taskEvent?.sequence === 1n) {
      begun++;
      onBegun();
    }
    const { payload } = taskEvent ?? {};
    if (payload?.case !== "progress" || payload.value?.processed !== awaited.processed) return;
    if (++awaited.arrived === watchers) {
      process.send?.({ lastMs: performance.timeOrigin + performance.now() } satisfies Arrived);
    }
  });
}

process.on("disconnect", () => process.exit());
process.on("message", (question: Question) => {
  if ("processed" in question) {
    awaited = { processed: question.processed, arrived: 0 };
    return;
  }
  onBegun = () => {
    if (begun === question.watchers) process.send?.({});
  };
  while (watchers < question.watchers) watch(question.taskId);
});
process.send?.({});
