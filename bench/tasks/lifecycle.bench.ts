import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fromJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import type { Lease } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { openStore } from "@depute/store";
import type { Benchmark } from "../bench.ts";
import { createTask, inFlight, type Platform, startPlatform, takeWork } from "./platform.ts";

/**
 * Tasks from their creation to their completion by a worker, over gRPC, 32 in flight, durable. A task is four commits:
 * created, handed out, begun, completed; how many commits of 32 writers the store alone makes is said beside it. How much a create costs with
 * many finished tasks in the store: DEPUTE_BENCH_TASKS of them, 100,000 when absent.
 */

const IN_FLIGHT = 32;
const TASKS = 2_000;
const WARM_UP = 400;
const COMMITS = 8_000;
const COMMITS_PER_TASK = 4;
const FINISHED = Number(process.env.DEPUTE_BENCH_TASKS ?? 100_000);
const CREATES = 2_000;
const OUTPUT = { full: fromJson(ValueSchema, { words: 3 }) };

export default function benchmarks(): Benchmark[] {
  let platform: Platform | undefined;
  let rate = 0;
  /** Started when it is first needed, with some tasks done. */
  const warm = async () => {
    if (platform === undefined) {
      platform = await startPlatform();
      await completeTasks(platform, WARM_UP);
    }
    return platform;
  };
  let emptyUs = 0;
  return [
    {
      name: `create to complete, ${IN_FLIGHT} in flight`,
      figures: [
        {
          name: "tasks completed",
          unit: "a second",
          async measure() {
            rate = await completeTasks(await warm(), TASKS);
            return rate;
          },
        },
        {
          name: "of what the store's commits alone allow",
          unit: "%",
          measure: async () => (100 * rate) / ((await commitRate()) / COMMITS_PER_TASK),
        },
      ],
    },
    {
      name: `create with ${FINISHED} finished tasks in the store`,
      figures: [
        {
          name: "with few",
          unit: "us",
          async measure() {
            emptyUs = await createUs(await warm());
            return emptyUs;
          },
        },
        {
          name: "with many, against few",
          unit: "%",
          atMost: 125,
          async measure() {
            const { restart, dataDir } = await warm();
            platform = await restart(() => fill(join(dataDir, "tasks.sqlite")));
            return (100 * (await createUs(platform))) / emptyUs;
          },
        },
      ],
      close: () => platform?.close(),
    },
  ];
}

/** Tasks a second. */
async function completeTasks(platform: Platform, tasks: number): Promise<number> {
  const { workers } = platform;
  const waiting = new Map<string, () => void>();
  const finish = async (lease: Lease) => {
    await workers.startAssignment({ lease });
    await workers.completeAssignment({ lease, output: OUTPUT });
    waiting.get(lease.taskId)?.();
  };
  const early = new Set<string>();
  const stop = takeWork(platform, 2 * IN_FLIGHT, (lease) => {
    void finish(lease).then(() => early.add(lease.taskId));
  });
  const startMs = performance.now();
  await inFlight(tasks, IN_FLIGHT, async () => {
    const taskId = await createTask(platform);
    if (!early.has(taskId)) await new Promise<void>((resolve) => waiting.set(taskId, resolve));
    waiting.delete(taskId);
  });
  const seconds = (performance.now() - startMs) / 1000;
  stop();
  return tasks / seconds;
}

/** Commits a second of 32 writers on a store of its own, a small row each. */
async function commitRate(): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "depute-bench-"));
  const sql = "CREATE TABLE rows (id BIGINT PRIMARY KEY, value BLOB NOT NULL)";
  const store = await openStore({
    file: join(folder, "bench.sqlite"),
    migrations: [{ id: 1, name: "rows", sql }],
    onError: () => {},
  });
  const value = new Uint8Array(300);
  const startMs = performance.now();
  await inFlight(COMMITS, IN_FLIGHT, (i) =>
    store.write((tx) => tx.run("INSERT INTO rows (id, value) VALUES (?, ?)", [i, value])),
  );
  const seconds = (performance.now() - startMs) / 1000;
  await store.close();
  rmSync(folder, { recursive: true, force: true });
  return COMMITS / seconds;
}

/** Microseconds a create, several in flight; the tasks are called off afterwards. */
async function createUs(platform: Platform): Promise<number> {
  const ids: string[] = [];
  const create = async () => ids.push(await createTask(platform));
  await inFlight(WARM_UP, IN_FLIGHT, create);
  const startMs = performance.now();
  await inFlight(CREATES, IN_FLIGHT, create);
  const us = ((performance.now() - startMs) * 1000) / CREATES;
  await inFlight(ids.length, IN_FLIGHT, (i) => platform.tasks.cancelTask({ taskId: ids[i] ?? "" }));
  return us;
}

/** Copies a finished task with its events and its request until there are many. */
function fill(file: string): void {
  const db = new DatabaseSync(file);
  const taskId = db.prepare("SELECT task_id FROM tasks WHERE status = 7 LIMIT 1").get()?.task_id as string;
  db.exec("BEGIN");
  for (const table of ["tasks", "task_events", "task_requests"]) {
    const columns = db.prepare("SELECT name FROM pragma_table_info(?)").all(table) as { name: string }[];
    const values = columns.map(({ name }) =>
      name === "task_id" || name === "request_id" ? `${name} || '-' || n.i` : name,
    );
    db.prepare(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
       INSERT INTO ${table} (${columns.map(({ name }) => name).join(", ")})
       SELECT ${values.join(", ")} FROM ${table}, n WHERE task_id = ?`,
    ).run(FINISHED, taskId);
  }
  db.exec("COMMIT");
  db.close();
}
