import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createProof, generateKeypair } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { freeSchema, ownPostgresForTests } from "@depute/store/testing";
import { amount } from "../amount.ts";
import type { Benchmark, Figure } from "../bench.ts";
import { postgresCpu } from "./postgres-cpu.ts";
import { type Served, serve } from "./serve.ts";

/**
 * Measures the CPU time of VerifyToken with a proof at equal load: with SQLite, with one process on Postgres, and with
 * replicas. The replicas get the calls in turn. The CPU time of Postgres is measured separately. Flushing to disk is
 * off.
 */

const CALLS = amount(3000);
const WARM_UP = amount(2000);
const IN_FLIGHT = 48;
const CALL = { htm: "POST", htu: "https://depute.example/depute.tasks.v1.TaskService/CreateTask" };
const holder = generateKeypair(engine);

interface Setup {
  readonly name: string;
  readonly processes: number;
  readonly settings: readonly string[];
}

interface Measured {
  readonly depute: number;
  readonly postgres: number;
}

export default async function benchmarks(): Promise<Benchmark[]> {
  const postgres = await ownPostgresForTests();
  if (postgres === undefined) return [];
  const folder = mkdtempSync(join(tmpdir(), "depute-bench-"));
  const masterKeyFile = join(folder, "master.key");
  writeFileSync(masterKeyFile, randomBytes(32).toString("base64url"), { mode: 0o600 });
  const onPostgres = () => [
    ...["--postgres-url", postgres.url, "--postgres-schema-prefix", freeSchema().slice(0, 20)],
    ...["--master-key-file", masterKeyFile],
  ];
  const setups: Setup[] = [
    { name: "SQLite", processes: 1, settings: [] },
    { name: "one process on Postgres", processes: 1, settings: onPostgres() },
    { name: "1 replica", processes: 1, settings: [...onPostgres(), "--replicated"] },
    { name: "3 replicas", processes: 3, settings: [...onPostgres(), "--replicated"] },
  ];
  const database = dirname(postgres.path);
  return [
    {
      name: "VerifyToken with a proof, by number of replicas",
      figures: setups.flatMap((setup) => figuresOf(setup, () => postgresCpu(database))),
      close: async () => {
        await postgres.stop();
        rmSync(folder, { recursive: true, force: true });
      },
    },
  ];
}

function figuresOf(setup: Setup, databaseCpu: () => number): Figure[] {
  let measuring: Promise<Measured> | undefined;
  const measured = () => {
    measuring ??= measure(setup, databaseCpu);
    return measuring;
  };
  const unit = "us of CPU a call";
  return [
    { name: `${setup.name}: Depute`, unit, measure: async () => (await measured()).depute },
    { name: `${setup.name}: Postgres`, unit, measure: async () => (await measured()).postgres },
  ];
}

async function measure({ processes, settings }: Setup, databaseCpu: () => number): Promise<Measured> {
  const servers: Served[] = [];
  for (let n = 0; n < processes; n++) servers.push(await serve("", settings));
  try {
    const token = await mint(servers[0] as Served);
    await verifyAll(servers, token, WARM_UP);
    const before = { depute: await cpuOf(servers), postgres: databaseCpu() };
    await verifyAll(servers, token, CALLS);
    return {
      depute: ((await cpuOf(servers)) - before.depute) / CALLS,
      postgres: (databaseCpu() - before.postgres) / CALLS,
    };
  } finally {
    for (const server of servers) server.close();
  }
}

async function cpuOf(servers: readonly Served[]): Promise<number> {
  const times = await Promise.all(servers.map((server) => server.cpu()));
  return times.reduce((sum, time) => sum + time, 0);
}

async function mint({ tokens }: Served): Promise<string> {
  const { token } = await tokens.mintToken({
    requestId: "r",
    delegatee: holder.principal.id,
    capabilities: [{ namespace: "docs", action: "read", resource: "/**" }],
    contractId: "ct_a1b2c3d4e5f6",
    maxBudgetMicrocents: 1_000_000n,
  });
  return token?.token ?? "";
}

/** Presents a token with a new proof in each call, to the servers in turn, with several calls always in flight. */
async function verifyAll(servers: readonly Served[], token: string, count: number): Promise<void> {
  const calls = Array.from({ length: count }, (_, n) => n).values();
  await Promise.all(
    Array.from({ length: IN_FLIGHT }, async () => {
      for (const n of calls) {
        const jwt = createProof(engine, holder, { ...CALL, token });
        const { result } = await (servers[n % servers.length] as Served).tokens.verifyToken({
          token: { token, format: "delegateos-sjt-v1" },
          proof: { jwt, method: CALL.htm, target: CALL.htu },
          requested: { namespace: "docs", action: "read", resource: "/a" },
        });
        if (result.case !== "scope") throw new Error(`denied: ${result.value?.type} ${result.value?.detail}`);
      }
    }),
  );
}
