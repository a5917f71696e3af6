import { createClient } from "@connectrpc/connect";
import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { type Lease, WorkerService } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { createGrpcJsTransport } from "@depute/grpc-js";
import { postgresForTests } from "@depute/store/testing";
import { Stage } from "../../tests/tasks/stage.ts";
import { amount, turns } from "../amount.ts";
import type { Benchmark } from "../bench.ts";
import { reportDelayP99 } from "../tasks/delay.ts";
import { inTurns } from "../turns.ts";

/**
 * Measures the time from a worker's report at one replica to a watcher at the same replica, and to a watcher at another
 * one. Wake-ups go over NOTIFY, because the replicas have no Redis. The clients are @grpc/grpc-js, in this process.
 */

const TASKS = 4;
const PACE = { perSecond: 200, seconds: amount(600) / 100, warmUpSeconds: amount(200) / 100 };
const ROUNDS = turns(5);
const SAME = "watcher at the same replica";
const OTHER = "watcher at another replica";
const APART = "the difference";

export default async function benchmarks(): Promise<Benchmark[]> {
  const postgres = await postgresForTests();
  if (postgres === undefined) return [];
  return [
    inTurns({
      name: `from worker to watcher, p99, ${PACE.perSecond} events a second of ${TASKS} tasks, 2 replicas`,
      unit: "ms",
      rounds: ROUNDS,
      names: [SAME, OTHER, APART],
      limits: { [APART]: { atMost: 15 } },
      start: () => start(postgres.url),
      close: () => postgres.stop(),
    }),
  ];
}

async function start(url: string) {
  const stage = await Stage.open(url, 2);
  const transports = stage.replicas.map((replica) => createGrpcJsTransport(new URL(replica.url).host));
  const [atA, atB] = transports;
  if (atA === undefined || atB === undefined) throw new Error("two replicas are needed");
  const agentId = await stage.agent();
  const worker = createClient(WorkerService, atA);
  const delegator = createClient(TaskService, atA);
  const last = { same: Number.NaN, other: Number.NaN };
  const measure = async (watcher: typeof atA) => {
    const leases = await begin();
    const p99 = await reportDelayP99(
      { tasks: createClient(TaskService, watcher), workers: worker, leases },
      PACE,
    );
    for (const lease of leases) await worker.failAssignment({ lease, failure: { reason: "DONE" } });
    return p99;
  };
  const begin = async (): Promise<Lease[]> => {
    for (let i = 0; i < TASKS; i++)
      await delegator.createTask({
        requestId: crypto.randomUUID(),
        draft: { agentId, description: "count words" },
      });
    const leases: Lease[] = [];
    while (leases.length < TASKS) {
      const { assignments } = await worker.takeAssignments({ agentId, worker: "bench", begin: true });
      leases.push(...assignments.flatMap(({ lease }) => lease ?? []));
    }
    return leases;
  };
  return {
    players: [
      { name: SAME, round: async () => (last.same = await measure(atA)) },
      { name: OTHER, round: async () => (last.other = await measure(atB)) },
      { name: APART, round: async () => last.other - last.same },
    ],
    stop() {
      for (const transport of transports) transport.close();
      stage.close();
    },
  };
}
