import { join } from "node:path";
import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { postgresForTests } from "@depute/store/testing";
import { amount, turns } from "../amount.ts";
import { type Apart, startApart } from "../apart.ts";
import { atPace } from "../at-pace.ts";
import type { Benchmark } from "../bench.ts";
import { inFlight } from "../in-flight.ts";
import { bareClient } from "../tasks/bare-client.ts";
import { inTurns } from "../turns.ts";
import { cpuOf } from "./cpu.ts";

/**
 * Measures the CPU time of a call to a plain gRPC server that inserts one row into Postgres. One server is compared with
 * three servers, which get a third of the calls each. The servers share nothing but the database. Both setups get calls
 * at the same rate: half of what one server reaches with 48 calls in flight. The quotient shows what more processes cost
 * without Depute. `replicas.bench.ts` measures the same with Depute.
 */

const IN_FLIGHT = 48;
const WARM_UP = amount(10_000);
const CALLS = amount(6_000, 100);
const ROUNDS = turns(5);
const ONE = "CPU of 1 bare server";
const THREE = "CPU of 3 bare servers";

let calls = 0;

export default async function benchmarks(): Promise<Benchmark[]> {
  const postgres = await postgresForTests();
  if (postgres === undefined) return [];
  return [
    inTurns({
      name: "a bare gRPC server that inserts a row a call, at an equal rate",
      unit: "ms a call",
      rounds: ROUNDS,
      names: [ONE, THREE],
      quotients: [{ name: "CPU of 3 bare servers against 1", of: THREE, by: ONE }],
      start: () => start(postgres.url),
      close: () => postgres.stop(),
    }),
  ];
}

async function start(url: string) {
  const one = await openServers(url, 1);
  const three = await openServers(url, 3);
  await inFlight(WARM_UP, IN_FLIGHT, one.call);
  await inFlight(3 * WARM_UP, IN_FLIGHT, three.call);
  const startMs = performance.now();
  await inFlight(CALLS, IN_FLIGHT, one.call);
  const perSecond = (CALLS * 500) / (performance.now() - startMs);
  const costOf = async ({ cpuMs, call }: Awaited<ReturnType<typeof openServers>>) => {
    const before = cpuMs();
    await atPace(perSecond, CALLS, call);
    return (cpuMs() - before) / CALLS;
  };
  return {
    players: [
      { name: ONE, round: () => costOf(one) },
      { name: THREE, round: () => costOf(three) },
    ],
    async stop() {
      await one.stop();
      await three.stop();
    },
  };
}

/** Starts servers, and returns a function that sends the call with number `i` to the next of them in turn. */
async function openServers(url: string, count: number) {
  const servers: Apart<{ address: string }>[] = [];
  while (servers.length < count)
    servers.push(await startApart(join(import.meta.dirname, "bare-server.ts"), [url]));
  const clients = servers.map(({ started }) =>
    bareClient(TaskService, started.address, { ownConnection: true }),
  );
  const creates = clients.map((client) => client.unary<object>("CreateTask"));
  return {
    cpuMs: () => servers.reduce((sum, server) => sum + cpuOf(server.process.pid), 0),
    call: (i: number) =>
      creates[i % count]?.({
        requestId: `${performance.timeOrigin} ${calls++}`,
        draft: { agentId: "worker", description: "count words" },
      }) as Promise<object>,
    async stop() {
      for (const client of clients) client.close();
      for (const server of servers) await server.stop();
    },
  };
}
