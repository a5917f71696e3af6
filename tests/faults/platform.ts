import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fromJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import type { DeputeClients } from "@depute/client";
import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";

/** Holds the cleanups of a test and runs them in reverse order. */
export class CleanUp {
  readonly #undo: (() => Promise<unknown>)[] = [];

  add(undo: () => Promise<unknown>): void {
    this.#undo.push(undo);
  }

  async run(): Promise<void> {
    for (const undo of this.#undo.splice(0).reverse()) await undo();
  }
}

/** Returns a folder that is deleted after the test. */
export async function dataFolder(cleanUp: CleanUp): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "depute-faults-"));
  cleanUp.add(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Two hundred texts: four batches of the example's worker. */
export const TEXTS = Array.from({ length: 200 }, (_, n) => `Text ${n} is good.`);

/** Returns a task for the example's worker. */
export function draftFor(agentId: string) {
  return {
    agentId,
    capabilityId: "sentiment",
    input: fromJson(ValueSchema, { texts: TEXTS }),
    limits: { heartbeat: { seconds: 1n } },
  };
}

export interface Watching {
  readonly events: TaskEvent[];
  /** Resolves after `count` progress reports. */
  progressed(count: number): Promise<void>;
  /** Resolves when the stream has ended, with or without an error. */
  readonly over: Promise<void>;
}

/** Reads a stream of events into a list. */
export function collect(stream: AsyncIterable<{ taskEvent?: TaskEvent | undefined }>): Watching {
  const events: TaskEvent[] = [];
  let look = () => {};
  const over = (async () => {
    try {
      for await (const { taskEvent: event } of stream) {
        if (event !== undefined) events.push(event);
        look();
      }
    } catch {
      // A killed platform breaks its streams. The list keeps the events that arrived before.
    }
  })();
  return {
    events,
    over,
    progressed: (count) =>
      new Promise((resolve) => {
        look = () => {
          if (events.filter(({ payload }) => payload.case === "progress").length >= count) resolve();
        };
        look();
      }),
  };
}

/** Reads the whole log of a task that has ended. */
export async function wholeLog(clients: DeputeClients, taskId: string): Promise<TaskEvent[]> {
  const { events, over } = collect(clients.tasks.watchTask({ taskId }));
  await over;
  return events;
}
