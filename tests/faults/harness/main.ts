/**
 * `npm run test:faults -- --minutes M [--replicas N] [--seed S] [--keep]`: a cluster on Postgres under load from clients in
 * two languages, with faults. At the end a checker in Python reads back every acknowledged write through every replica.
 */
import { type ChildProcess, type StdioOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { ownPostgresForTests } from "@depute/store/testing";
import { type Fault, faultsOf } from "./faults.ts";
import { printFigures } from "./figures.ts";
import { Journal } from "./journal.ts";
import { startCluster } from "./running-cluster.ts";

const { values: flags } = parseArgs({
  options: {
    minutes: { type: "string", default: "2" },
    replicas: { type: "string", default: "3" },
    seed: { type: "string", default: "1" },
    keep: { type: "boolean", default: false },
  },
});
const here = (file: string) => fileURLToPath(new URL(file, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "depute-faults-"));
const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms));

/** Milliseconds between two faults, in which the platform recovers. */
const RECOVERY_MS = 4_000;
/** Milliseconds in which the clients must finish their last calls. */
const FINISH_MS = 120_000;

/** A random source with a seed, so that a run can be repeated (Mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

async function startClient(command: string, args: readonly string[], name: string): Promise<ChildProcess> {
  const log = openSync(join(folder, `${name}.log`), "a");
  const child = spawn(command, args, { stdio: ["ignore", "pipe", log] });
  for await (const line of createInterface({ input: child.stdout as Readable }))
    if (line === "ready") return child;
  throw new Error(`the client ${name} did not start: ${readFileSync(join(folder, `${name}.log`))}`);
}

async function finish(client: ChildProcess): Promise<void> {
  client.kill("SIGTERM");
  const timer = setTimeout(() => client.kill("SIGKILL"), FINISH_MS);
  const [code] = await once(client, "exit");
  clearTimeout(timer);
  if (code !== 0) throw new Error(`a client ended with ${code}; see ${folder}`);
}

/** Runs the checker. @returns whether it found no violation */
async function check(stateFile: string, journals: readonly string[], stdio: StdioOptions = "inherit") {
  const checker = spawn("python3", [here("check.py"), stateFile, ...journals], { stdio });
  const [code] = await once(checker, "exit");
  return code === 0;
}

/** Whether the checker finds each of several false lines, each in a journal of its own. */
async function findsFalseLines(stateFile: string, journalPath: string): Promise<boolean> {
  const task = readFileSync(journalPath, "utf8")
    .split("\n")
    .find((line) => line.includes('"kind":"task"'));
  const falseLines = [
    { kind: "agent", id: "never-registered" },
    { ...JSON.parse(task ?? "{}"), output: { square: -1 } },
    { kind: "head", size: 1, root: Buffer.alloc(32).toString("base64") },
  ];
  for (const [i, line] of falseLines.entries()) {
    const path = join(folder, `false-${i}.jsonl`);
    new Journal(path).add(line);
    if (await check(stateFile, [path], "ignore")) {
      console.log(`the checker does not find a false line of the kind ${line.kind}`);
      return false;
    }
  }
  console.log(`the checker finds ${falseLines.length} of ${falseLines.length} false lines`);
  return true;
}

async function run(): Promise<number> {
  const postgres = await ownPostgresForTests();
  if (postgres === undefined) return 0;
  const random = randomFrom(Number(flags.seed));
  const journals = ["typescript", "python", "faults"].map((name) => join(folder, `${name}.jsonl`));
  const [typescript = "", python = "", faultsPath = ""] = journals;
  const cluster = await startCluster({
    ...{ replicas: Number(flags.replicas), folder },
    env: { DEPUTE_POSTGRES_URL: postgres.url, DEPUTE_REDIS_URL: "" },
  });
  const clients: ChildProcess[] = [];
  const end = async () => {
    for (const client of clients) client.kill("SIGKILL");
    await cluster.stop();
    await postgres.stop();
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => void end().finally(() => process.exit(1)));
  try {
    const gateways = cluster
      .state()
      .services.filter(({ service }) => service === "gateway")
      .map(({ url }) => url);
    clients.push(
      await startClient(
        process.execPath,
        [here("load.ts"), typescript, cluster.url, ...gateways],
        "typescript",
      ),
    );
    clients.push(await startClient("python3", [here("load.py"), python, ...gateways], "python"));
    const journal = new Journal(faultsPath);
    const cause = async ({ name, cause }: Fault) => {
      console.log(`${new Date().toISOString()} ${name}`);
      const beginMs = Date.now();
      await cause().catch((error: unknown) => console.log(`  not caused: ${error}`));
      journal.add({ kind: "fault", name, beginMs, endMs: Date.now() });
      await pause(RECOVERY_MS);
    };
    const endMs = Date.now() + Number(flags.minutes) * 60_000;
    await pause(RECOVERY_MS);
    journal.add({ kind: "calm", beginMs: Date.now() - RECOVERY_MS, endMs: Date.now() });
    for (let faults: Fault[] = []; Date.now() < endMs; ) {
      if (faults.length === 0) faults = [...faultsOf(cluster, postgres, random)];
      const next = faults.shift();
      if (next !== undefined) await cause(next);
    }
    await cause({ name: "a rolling restart", cause: () => cluster.restartInTurn() });
    console.log("the clients finish");
    await Promise.all(clients.map(finish));
    printFigures(journals);
    const isSound = await check(cluster.stateFile, journals);
    return isSound && (await findsFalseLines(cluster.stateFile, typescript)) ? 0 : 1;
  } finally {
    await end();
  }
}

const code = await run();
if (code !== 0 || flags.keep) console.log(`the logs and journals are in ${folder}`);
else rmSync(folder, { recursive: true, force: true });
process.exitCode = code;
