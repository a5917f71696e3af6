import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openStore } from "@depute/store";
import { startReference } from "../a2a/reference.ts";
import { grpcSender } from "../a2a/senders.ts";
import { amount, turns } from "../amount.ts";
import type { Benchmark } from "../bench.ts";
import { inFlight } from "../in-flight.ts";
import { inTurns } from "../turns.ts";
import { taskRunner } from "./complete-tasks.ts";
import { copyTask } from "./copy-task.ts";
import { createTask, type Platform, startPlatform } from "./platform.ts";

/**
 * Measures tasks from creation to completion by a worker, over gRPC, durable, with 32 in flight. The reference
 * is SendMessage of the A2A SDK, with a store in memory and no worker. The clients are plain @grpc/grpc-js in this
 * process, except the SDK's worker; each server has its own process. A task takes two commits: created and dispatched, then
 * completed. The output also shows the commit rate of 32 writers on the store alone. The delegator creates each
 * task by its own call, or concurrent tasks in a batch. The cost of a create is measured with many finished
 * tasks in the store: DEPUTE_BENCH_TASKS, default 100,000.
 */

const IN_FLIGHT = 32;
const TASKS = amount(2_000);
const ROUNDS = turns(5);
/** Number of warm-up tasks. The compiler needs some seconds to optimize hot code. */
const WARM_UP = amount(12_000);
const WARM_UP_CREATES = amount(8_000);
const COMMITS = amount(4_000);
const COMMITS_PER_TASK = 2;
const FINISHED = Number(process.env.DEPUTE_BENCH_TASKS ?? 100_000);
const CREATES = amount(2_000);

const NAMES = [
  "tasks completed, created one by one",
  "tasks completed, created together",
  "tasks completed by the SDK's worker",
  "messages of the A2A SDK",
  "tasks that the store's commits alone allow",
] as const;

export default function benchmarks(): Benchmark[] {
  let platform: Platform | undefined;
  /**
   * Returns the platform. The first call starts the platform and completes some tasks, so that the code is
   * compiled before the measurement.
   */
  const warm = async () => {
    if (platform === undefined) {
      platform = await startPlatform();
      const runner = taskRunner(platform);
      await runner.run(WARM_UP_CREATES, IN_FLIGHT);
      runner.close();
    }
    return platform;
  };
  let emptyUs = 0;
  return [
    inTurns({
      name: `create to complete, ${IN_FLIGHT} in flight`,
      unit: "a second",
      rounds: ROUNDS,
      names: NAMES,
      quotients: [
        { name: "one by one, by the A2A SDK", of: NAMES[0], by: NAMES[3], atLeast: 1 },
        { name: "together, by the A2A SDK", of: NAMES[1], by: NAMES[3], atLeast: 1 },
        { name: "by the SDK's worker, by the bare client", of: NAMES[2], by: NAMES[0], atLeast: 0.8 },
        { name: "one by one, by what the store's commits alone allow", of: NAMES[0], by: NAMES[4] },
      ],
      start: async () => startContenders(await warm()),
    }),
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
            platform = await restart(() =>
              copyTask(join(dataDir, "tasks.sqlite"), { from: 0, to: FINISHED }),
            );
            return (100 * (await createUs(platform))) / emptyUs;
          },
        },
      ],
      close: () => platform?.close(),
    },
  ];
}

/** Starts the reference, and completes some tasks of each contender, so that their code is compiled. */
async function startContenders(platform: Platform) {
  const runner = taskRunner(platform);
  const together = taskRunner(platform, "together");
  const bySdk = taskRunner(platform, "one by one", "by the SDK");
  const reference = await startReference();
  const a2a = grpcSender(reference.grpc);
  const send = async (messages: number) => {
    const startMs = performance.now();
    await inFlight(messages, IN_FLIGHT, () => a2a.send());
    return (messages * 1000) / (performance.now() - startMs);
  };
  await send(WARM_UP);
  await runner.run(WARM_UP, IN_FLIGHT);
  await together.run(WARM_UP, IN_FLIGHT);
  await bySdk.run(WARM_UP, IN_FLIGHT);
  const rounds = [
    () => runner.run(TASKS, IN_FLIGHT),
    () => together.run(TASKS, IN_FLIGHT),
    () => bySdk.run(TASKS, IN_FLIGHT),
    () => send(TASKS),
    async () => (await commitRate()) / COMMITS_PER_TASK,
  ];
  return {
    players: NAMES.map((name, i) => ({ name, round: rounds[i] as () => Promise<number> })),
    async stop() {
      runner.close();
      together.close();
      bySdk.close();
      a2a.close();
      await reference.close();
    },
  };
}

/** Returns the commits per second of 32 writers on a separate store. Each commit is one small row. */
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

/** Returns the microseconds per creation, with several creations in flight. The tasks are cancelled afterwards. */
async function createUs(platform: Platform): Promise<number> {
  const ids: string[] = [];
  const create = async () => ids.push(await createTask(platform));
  await inFlight(WARM_UP_CREATES, IN_FLIGHT, create);
  const startMs = performance.now();
  await inFlight(CREATES, IN_FLIGHT, create);
  const us = ((performance.now() - startMs) * 1000) / CREATES;
  await inFlight(ids.length, IN_FLIGHT, (i) => platform.tasks.cancelTask({ taskId: ids[i] ?? "" }));
  return us;
}
