import { spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freeSchema, hasPostgres, postgresForTests } from "@depute/store/testing";
import { freePorts } from "depute/ports";
import { afterEach, describe, expect, test } from "vitest";
import { runMainJob } from "./main-job.ts";
import { startPlatformProcess, startWorkerProcess } from "./processes.ts";
import { score, summarize } from "./sentiment.ts";
import { collectTexts } from "./texts.ts";

const cleanUp: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const undo of cleanUp.splice(0).reverse()) await undo();
});

async function platform(command: "start" | "cluster", env: Record<string, string>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "depute-main-job-"));
  cleanUp.push(() => rm(folder, { recursive: true, force: true }));
  const settings = { DEPUTE_DATA_DIR: folder, DEPUTE_LOG_LEVEL: "error", ...env };
  const started = await startPlatformProcess([command], settings);
  cleanUp.push(() => started.stop());
  return started.about;
}

/** Runs the main job with a worker in a separate process, and checks the whole visible output. */
async function mainJob(url: string): Promise<void> {
  const worker = await startWorkerProcess(url);
  cleanUp.push(() => worker.stop());
  const seen: string[] = [];
  const note = (line: string) => void seen.push(line);
  const outcome = await runMainJob(url, worker.about, { say: note, show: note });

  const expected = summarize(collectTexts(500).map(score));
  expect(outcome.output).toEqual(expected);
  expect(outcome).toMatchObject({ verified: true, attested: true });
  expect(outcome.refusal).toContain("revoked");
  expect(outcome.nekte).toMatchObject({
    status: "completed",
    out: {
      minimal: expect.stringMatching(/^\d+% positive$/),
      compact: { count: 500, mean_score: expected.mean_score },
    },
  });
  expect(outcome.a2a).toEqual(expected);
  // The job runs once over gRPC and once over NEKTE, so the line with the full progress must appear twice.
  expect(seen.filter((line) => line.includes("500/500"))).toHaveLength(2);
}

test("the main job, on the platform in one process", { timeout: 60_000 }, async () => {
  await mainJob(await platform("start", { DEPUTE_GATEWAY_PORT: "0" }));
});

const redis = process.env.DEPUTE_REDIS_URL || spawnSync("redis-server", ["--version"]).status === 0;
if (!redis) {
  const lack = "There is no redis-server on the PATH and no DEPUTE_REDIS_URL";
  if (process.env.CI === "true") throw new Error(`${lack}: with CI=true its tests may not be skipped.`);
  console.warn(`\n*** ${lack}: THE MAIN JOB WITH FIVE PROCESSES IS SKIPPED. ***\n`);
}

/** Chooses free ports for the addresses of five processes. */
async function addresses(): Promise<Record<string, string>> {
  const names = ["GATEWAY", "REGISTRY", "TASKS", "TOKENS", "VERIFIER"];
  const ports = await freePorts(names.length);
  return Object.fromEntries(names.map((name, index) => [`DEPUTE_${name}_PORT`, String(ports[index])]));
}

describe.runIf(redis)("in separate processes", () => {
  test("the main job, with five processes and Redis", { timeout: 90_000 }, async () => {
    await mainJob(await platform("cluster", await addresses()));
  });

  const postgres = hasPostgres() || process.env.CI === "true";
  test.runIf(postgres)(
    "the main job, with five processes, Redis and Postgres",
    { timeout: 90_000 },
    async () => {
      const database = await postgresForTests();
      cleanUp.push(async () => database?.stop());
      const where = { DEPUTE_POSTGRES_URL: database?.url ?? "", DEPUTE_POSTGRES_SCHEMA_PREFIX: freeSchema() };
      await mainJob(await platform("cluster", { ...(await addresses()), ...where }));
    },
  );
});
