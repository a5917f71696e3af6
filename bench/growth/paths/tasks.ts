import { join } from "node:path";
import { inFlight } from "../../in-flight.ts";
import { OUTPUT, taskRunner } from "../../tasks/complete-tasks.ts";
import { copyTask } from "../../tasks/copy-task.ts";
import { AGENT, createTask, startPlatform } from "../../tasks/platform.ts";
import { calls, type Path, powersTo, usEach } from "../path.ts";

const IN_FLIGHT = 32;
const LARGEST_STORED = 1_000_000;
const LARGEST_OPEN = 100_000;
const WARM_UP = 300;
const CALLS = 200;
const PAGE = 20;
const BATCH = 100;
const BATCHES_IN_FLIGHT = 4;

const CREATE = "create a task";
const READ = "read a task";
const LIST = `list ${PAGE} tasks`;
const WORK = "take, start and complete a task";

/** Finished tasks in the store. They are copies of one row, because a million tasks by calls would take an hour. */
export const tasksStored: Path = {
  name: "tasks stored",
  unit: "us",
  sizes: powersTo(LARGEST_STORED),
  lines: [CREATE, READ, LIST],
  flat: [CREATE, READ, LIST].map((line) => ({ line, from: 1_000, to: LARGEST_STORED, atMost: 2 })),
  async open() {
    let platform = await startPlatform();
    const runner = taskRunner(platform);
    await runner.run(calls(500), IN_FLIGHT);
    runner.close();
    let size = 0;
    const created: string[] = [];
    const lines: Record<string, (i: number) => Promise<unknown>> = {
      [CREATE]: async () => created.push(await createTask(platform)),
      [READ]: (i) => platform.tasks.getTask({ taskId: created[(i * 7) % created.length] ?? "" }),
      [LIST]: () => platform.tasks.listTasks({ pageSize: PAGE }),
    };
    return {
      async grow(to) {
        // Cancels the tasks of the previous size, so that few tasks are open.
        await inFlight(created.length, IN_FLIGHT, (i) =>
          platform.tasks.cancelTask({ taskId: created[i] ?? "" }),
        );
        created.length = 0;
        platform = await platform.restart(() =>
          copyTask(join(platform.dataDir, "tasks.sqlite"), { from: size, to }),
        );
        size = to;
        for (const call of [CREATE, READ, LIST]) await warmUp(lines[call]);
      },
      measure: (line) => usEach(CALLS, IN_FLIGHT, lines[line] as Call),
      close: () => platform.close(),
    };
  },
};

/** Pending tasks of one agent, which no worker has taken. */
export const tasksOpen: Path = {
  name: "tasks open",
  unit: "us",
  sizes: powersTo(LARGEST_OPEN),
  lines: [CREATE, WORK],
  flat: [CREATE, WORK].map((line) => ({ line, from: 1_000, to: LARGEST_OPEN, atMost: 2 })),
  async open() {
    const platform = await startPlatform();
    const { workers, tasks } = platform;
    let size = 0;
    let batches = 0;
    const createBatch = async () => {
      const batch = ++batches;
      const requests = Array.from({ length: BATCH }, (_, i) => ({
        requestId: `${batch} ${i}`,
        draft: { agentId: AGENT, description: "count words" },
      }));
      await tasks.batchCreateTasks({ requests });
      size += BATCH;
    };
    const lines: Record<string, Call> = {
      async [CREATE]() {
        await createTask(platform);
        size++;
      },
      async [WORK](i) {
        const worker = `worker-${i % IN_FLIGHT}`;
        const { assignments } = await workers.takeAssignments({ agentId: AGENT, worker, capacity: 1 });
        for (const { lease } of assignments) {
          if (lease === undefined) continue;
          await workers.startAssignment({ lease });
          await workers.completeAssignment({ lease, output: OUTPUT });
          size--;
        }
      },
    };
    return {
      async grow(to) {
        const missing = Math.max(1, Math.ceil((to - size) / BATCH));
        await inFlight(missing, BATCHES_IN_FLIGHT, createBatch);
        for (const call of [CREATE, WORK]) await warmUp(lines[call]);
      },
      measure: (line) => usEach(CALLS, IN_FLIGHT, lines[line] as Call),
      close: () => platform.close(),
    };
  },
};

type Call = (i: number) => Promise<unknown>;

function warmUp(call: Call | undefined): Promise<void> {
  return inFlight(calls(WARM_UP), IN_FLIGHT, call as Call);
}
