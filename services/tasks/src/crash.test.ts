import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fromJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { Lease } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { afterEach, beforeEach, expect, test } from "vitest";
import { collect, connect } from "./testing/platform.ts";

const PROGRAM = join(import.meta.dirname, "testing", "crash-host.ts");
const DONE = { full: fromJson(ValueSchema, "done") };

let dataDir: string;
let child: ChildProcess | undefined;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "depute-tasks-crash-"));
});
afterEach(async () => {
  await kill();
  rmSync(dataDir, { recursive: true, force: true });
});

async function start() {
  const started = spawn(process.execPath, [PROGRAM, dataDir], { stdio: ["ignore", "pipe", "inherit"] });
  child = started;
  const [address] = (await once(createInterface({ input: started.stdout }), "line")) as [string];
  return connect(address);
}

async function kill(): Promise<void> {
  const running = child;
  child = undefined;
  if (running === undefined) return;
  const gone = once(running, "exit");
  running.kill("SIGKILL");
  await gone;
}

test("acknowledged writes survive a kill, and the tasks continue", {
  timeout: 30_000,
}, async () => {
  const before = await start();
  const draft = { agentId: "worker", description: "count" };
  const { task } = await before.tasks.createTask({ requestId: "once", draft });
  const taskId = task?.id ?? "";
  const [given] = await collect(before.workers.watchAssignments({ agentId: "worker" }), 1);
  const lease = given?.assignment?.lease as Lease;
  expect(lease.taskId).toBe(taskId);
  await before.workers.startAssignment({ lease });

  // The test kills the process while a watcher, reports and creations are in flight.
  const seen: bigint[] = [];
  const watching = (async () => {
    for await (const { taskEvent: event } of before.tasks.watchTask({ taskId }))
      seen.push(event?.sequence ?? 0n);
  })().catch(() => {});
  const acknowledged: bigint[] = [];
  const created: string[] = [];
  const reporting = (async () => {
    for (let processed = 1; ; processed++) {
      const { sequence } = await before.workers.reportProgress({ lease, progress: { processed } });
      acknowledged.push(sequence);
      const other = await before.tasks.createTask({ requestId: `other ${processed}`, draft });
      created.push(other.task?.id ?? "");
      if (processed === 20) void kill();
    }
  })().catch(() => {});
  await Promise.all([reporting, watching]);
  before.close();
  expect(acknowledged.length).toBeGreaterThanOrEqual(20);

  const after = await start();
  for (const [index, id] of created.entries()) {
    const again = await after.tasks.createTask({ requestId: `other ${index + 1}`, draft });
    expect(again.task?.id).toBe(id);
  }
  const cursor = seen.at(-1) ?? 0n;
  const rest = collect(after.tasks.watchTask({ taskId, afterSequence: cursor }));
  await after.workers.reportProgress({ lease, progress: { processed: 1000 } });
  const done = await after.workers.completeAssignment({ lease, output: DONE });
  expect(done.task).toMatchObject({
    status: TaskStatus.COMPLETED,
    output: DONE,
    progress: { processed: 1000 },
  });

  const sequences = [...seen, ...(await rest).map(({ taskEvent }) => taskEvent?.sequence ?? 0n)];
  expect(sequences).toEqual(sequences.map((_, index) => BigInt(index + 1)));
  expect(sequences).toEqual(expect.arrayContaining(acknowledged));
  expect(sequences.at(-1)).toBe(done.task?.lastSequence);
  after.close();
});

/** Number of times that the test kills the process. DEPUTE_KILLS overrides it. */
const KILLS = Number(process.env.DEPUTE_KILLS ?? (process.env.CI === "true" ? 50 : 4));

test(`killed ${KILLS} times at any point under load, it loses nothing that it acknowledged, and every stream goes on`, {
  timeout: 20_000 + KILLS * 10_000,
}, async () => {
  const draft = { agentId: "worker", description: "count" };
  const created: string[] = [];
  const completed: string[] = [];
  const reported: bigint[] = [];
  const seen: bigint[] = [];
  let long: Lease | undefined;

  for (let round = 0; round < KILLS; round++) {
    const { tasks, workers, close } = await start();
    long ??= await beginLong(tasks, workers);
    const lease = long;
    // Each round kills the process after a random number of acknowledged calls, so that the kills come at different
    // points.
    let left = 1 + Math.floor(Math.random() * 60);
    const acknowledged = () => {
      if (--left === 0) void kill();
    };
    const untilKilled = (work: (n: number) => Promise<void>) =>
      (async () => {
        for (let n = 0; ; n++) await work(n);
      })().catch(() => {});
    await Promise.all([
      untilKilled(async (n) => {
        const { task } = await tasks.createTask({ requestId: `${round} ${n}`, draft });
        created.push(task?.id ?? "");
        acknowledged();
      }),
      untilKilled(async () => {
        const request = { agentId: "worker", worker: "w", capacity: 8 };
        for (const { lease: given } of (await workers.takeAssignments(request)).assignments) {
          if (given === undefined) continue;
          await workers.startAssignment({ lease: given });
          await workers.completeAssignment({ lease: given, output: DONE });
          completed.push(given.taskId);
          acknowledged();
        }
      }),
      untilKilled(async () => {
        const request = { agentId: "worker", capacity: 4, begin: true };
        for await (const { assignment } of workers.watchAssignments(request)) {
          if (assignment?.lease === undefined) continue;
          await workers.completeAssignment({ lease: assignment.lease, output: DONE });
          completed.push(assignment.lease.taskId);
          acknowledged();
        }
      }),
      untilKilled(async (n) => {
        const report = { lease, progress: { processed: n }, requestId: `${round} ${n}` };
        reported.push((await workers.reportProgress(report)).sequence);
        acknowledged();
      }),
      untilKilled(async () => {
        const watched = tasks.watchTask({ taskId: lease.taskId, afterSequence: seen.at(-1) ?? 0n });
        for await (const { taskEvent: event } of watched) seen.push(event?.sequence ?? 0n);
        throw new Error("the stream of a task that goes on has ended");
      }),
    ]);
    close();
  }

  const { tasks, workers, close } = await start();
  const last = (await workers.reportProgress({ lease: long as Lease, progress: { processed: 1 } })).sequence;
  for await (const { taskEvent: event } of tasks.watchTask({
    taskId: long?.taskId ?? "",
    afterSequence: seen.at(-1) ?? 0n,
  })) {
    seen.push(event?.sequence ?? 0n);
    if (event?.sequence === last) break;
  }
  expect(seen).toEqual(seen.map((_, index) => BigInt(index + 1)));
  expect(seen).toEqual(expect.arrayContaining(reported));
  const statusOf = async (value: string) => (await tasks.getTask({ taskId: value })).task?.status;
  for (const taskId of created) expect(await statusOf(taskId)).toBeDefined();
  for (const taskId of completed) expect(await statusOf(taskId)).toBe(TaskStatus.COMPLETED);
  expect(new Set(created).size).toBe(created.length);
  close();
});

type Clients = Awaited<ReturnType<typeof start>>;

/** Creates and starts a task that runs until the test ends. Returns its lease. */
async function beginLong(tasks: Clients["tasks"], workers: Clients["workers"]): Promise<Lease> {
  const limits = { heartbeat: { seconds: 3600n } };
  const draft = { agentId: "worker", description: "go on", limits };
  await tasks.createTask({ requestId: "long", draft });
  const taken = await workers.takeAssignments({ agentId: "worker", worker: "long" });
  const lease = taken.assignments[0]?.lease as Lease;
  await workers.startAssignment({ lease });
  return lease;
}
