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

test("what was acknowledged before a kill is there after it, and the work goes on", {
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

  // Work in full flow: a watcher, reports and new tasks on their way while the process dies.
  const seen: bigint[] = [];
  const watching = (async () => {
    for await (const { event } of before.tasks.watchTask({ taskId })) seen.push(event?.sequence ?? 0n);
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

  const sequences = [...seen, ...(await rest).map(({ event }) => event?.sequence ?? 0n)];
  expect(sequences).toEqual(sequences.map((_, index) => BigInt(index + 1)));
  expect(sequences).toEqual(expect.arrayContaining(acknowledged));
  expect(sequences.at(-1)).toBe(done.task?.lastSequence);
  after.close();
});
