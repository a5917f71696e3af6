import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { freePorts } from "@depute/cli/ports";
import { CuttingProxy, freeSchema, ownPostgresForTests } from "@depute/store/testing";
import { afterAll, afterEach, expect, test, vi } from "vitest";
import { CleanUp, dataFolder } from "./platform.ts";

const MAIN = new URL("../../cli/src/main.ts", import.meta.url).pathname;
const WAIT = { timeout: 120_000, interval: 50 };

const cleanUp = new CleanUp();
afterEach(() => cleanUp.run());
const postgres = await ownPostgresForTests();
afterAll(() => postgres?.stop());

/** The whole platform in a process of its own, spoken to with plain HTTP. */
async function start(folder: string, env: Record<string, string> = {}) {
  const [port = 0] = await freePorts(1);
  const child = spawn(process.execPath, [MAIN, "start", "--gateway-port", `${port}`, "--data-dir", folder], {
    env: { ...process.env, DEPUTE_LOG_LEVEL: "silent", ...env },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const said = text(child.stderr);
  const ended = once(child, "exit").then(([code]) => code as number | null);
  cleanUp.add(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  const url = `http://127.0.0.1:${port}`;
  const health = async () => (await fetch(`${url}/health`).catch(() => undefined))?.status;
  const register = async (id: string) => {
    const answer = await fetch(`${url}/depute.registry.v1.AgentService/RegisterAgent`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ requestId: id, agent: { id, description: "for a test" } }),
    });
    const body = (await answer.json()) as { code?: string };
    return { status: answer.status, code: body.code };
  };
  const becomes = (status: number) => vi.waitFor(async () => expect(await health()).toBe(status), WAIT);
  await becomes(200);
  return { child, said, ended, register, becomes };
}

/** How many bytes a file may have from now on, for a process that runs. Beyond, writes fail as on a full disk. */
async function limitFiles({ pid }: ChildProcess, bytes: string): Promise<void> {
  const [status] = await once(spawn("prlimit", ["--pid", `${pid}`, `--fsize=${bytes}:`]), "exit");
  expect(status).toBe(0);
}

test("a database that is replaced ends the process, and the files in its place stay as they are", async () => {
  const folder = await dataFolder(cleanUp);
  const platform = await start(folder);
  expect(await platform.register("first")).toMatchObject({ status: 200 });
  const file = join(folder, "registry.sqlite");
  for (const suffix of ["", "-wal"]) copyFileSync(`${file}${suffix}`, `${file}${suffix}.copy`);
  for (const suffix of ["", "-wal"]) renameSync(`${file}${suffix}.copy`, `${file}${suffix}`);
  const log = readFileSync(`${file}-wal`);
  expect(await platform.register("second")).toMatchObject({ status: 503, code: "unavailable" });
  expect(await platform.ended).toBe(1);
  expect(await platform.said).toContain(`${file} was removed or replaced while it was in use`);
  expect(existsSync(`${file}-wal`) && readFileSync(`${file}-wal`).equals(log)).toBe(true);

  const again = await start(folder);
  expect(await again.register("first")).toMatchObject({ status: 200 });
}, 300_000);

test("a full disk costs readiness until there is room", async () => {
  const { child, register, becomes } = await start(await dataFolder(cleanUp));
  await limitFiles(child, "1000");
  expect(await register("full")).toMatchObject({ status: 503, code: "unavailable" });
  await becomes(503);
  await limitFiles(child, "unlimited");
  await becomes(200);
  expect(await register("room")).toMatchObject({ status: 200 });
  expect(child.exitCode).toBe(null);
}, 300_000);

test.runIf(postgres !== undefined)(
  "a platform goes on when its database is back",
  async () => {
    const proxy = await CuttingProxy.start({ path: postgres?.path ?? "" });
    cleanUp.add(() => proxy.stop());
    const { child, register, becomes } = await start(await dataFolder(cleanUp), {
      DEPUTE_POSTGRES_URL: `postgres://depute@127.0.0.1:${proxy.port}/postgres`,
      DEPUTE_POSTGRES_SCHEMA_PREFIX: freeSchema(),
    });
    // Before the first write, and after one.
    for (const id of ["first", "second"]) {
      proxy.cut("reset");
      await becomes(503);
      expect(await register(`not-${id}`)).toMatchObject({ status: 503, code: "unavailable" });
      proxy.restore();
      await becomes(200);
      expect(await register(id)).toMatchObject({ status: 200 });
    }
    await postgres?.restart("immediate");
    await vi.waitFor(async () => expect(await register("third")).toMatchObject({ status: 200 }), WAIT);
    expect(child.exitCode).toBe(null);
  },
  300_000,
);

/** What a platform says that does not start. */
async function refusal(folder: string, env: Record<string, string>) {
  const child = spawn(process.execPath, [MAIN, "start", "--gateway-port", "0", "--data-dir", folder], {
    env: { ...process.env, DEPUTE_LOG_LEVEL: "silent", ...env },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const said = text(child.stderr);
  cleanUp.add(async () => void child.kill("SIGKILL"));
  const [status] = await once(child, "exit");
  return { status, said: await said };
}

test.runIf(postgres !== undefined)(
  "schemas open only with the keys that they were made with",
  async () => {
    const env = {
      DEPUTE_POSTGRES_URL: postgres?.url ?? "",
      DEPUTE_POSTGRES_SCHEMA_PREFIX: freeSchema(),
    };
    const own = await dataFolder(cleanUp);
    const platform = await start(own, env);
    const other = await dataFolder(cleanUp);
    const isRefused = async (key: string) => {
      const { status, said } = await refusal(other, env);
      expect(status).toBe(1);
      expect(said).toContain(`made with another ${key} key`);
      expect(said).toContain("DEPUTE_POSTGRES_SCHEMA_PREFIX");
      expect(said).toContain(`DEPUTE_REPLACE_KEYS=${key}`);
    };
    await isRefused("root");
    expect(await platform.register("undisturbed")).toMatchObject({ status: 200 });
    platform.child.kill("SIGTERM");
    await platform.ended;
    for (const key of ["root", "master", "verifier", "card", "callback", "session-seal"]) {
      await isRefused(key);
      copyFileSync(join(own, `${key}.key`), join(other, `${key}.key`));
    }
    const moved = await start(other, env);
    expect(await moved.register("moved")).toMatchObject({ status: 200 });
  },
  300_000,
);
