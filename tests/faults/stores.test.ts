import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { text } from "node:stream/consumers";
import { CuttingProxy, freeSchema, ownPostgresForTests } from "@depute/store/testing";
import { freePorts } from "depute/ports";
import { Client } from "pg";
import { afterAll, afterEach, expect, test, vi } from "vitest";
import { CleanUp, dataFolder } from "./platform.ts";

const MAIN = new URL("../../cli/src/main.ts", import.meta.url).pathname;
const WAIT = { timeout: 120_000, interval: 50 };

const cleanUp = new CleanUp();
afterEach(() => cleanUp.run());
const postgres = await ownPostgresForTests();
afterAll(() => postgres?.stop());

/** Starts the whole platform in its own process. The test calls it with plain HTTP. */
async function start(folder: string, env: Record<string, string> = {}) {
  const [port = 0] = await freePorts(1);
  const child = spawn(process.execPath, [MAIN, "start", "--gateway-port", `${port}`, "--data-dir", folder], {
    env: { ...process.env, DEPUTE_LOG_LEVEL: "silent", ...env },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const errorText = text(child.stderr);
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
  return { child, said: errorText, ended, register, becomes };
}

/** Limits the size of files in bytes for a running process. Writes beyond the limit fail as on a full disk. */
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

test("a full disk makes the platform unready until it has room", async () => {
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
  "a platform continues when its database returns",
  async () => {
    const proxy = await CuttingProxy.start({ path: postgres?.path ?? "" });
    cleanUp.add(() => proxy.stop());
    const { child, register, becomes } = await start(await dataFolder(cleanUp), {
      DEPUTE_POSTGRES_URL: `postgres://depute@127.0.0.1:${proxy.port}/postgres`,
      DEPUTE_POSTGRES_SCHEMA_PREFIX: freeSchema(),
    });
    // The connections are cut twice: before the store has written an agent, and after that write.
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

/** Returns the output of a platform that does not start. */
async function refusal(folder: string, env: Record<string, string>) {
  const child = spawn(process.execPath, [MAIN, "start", "--gateway-port", "0", "--data-dir", folder], {
    env: { ...process.env, DEPUTE_LOG_LEVEL: "silent", ...env },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const errorText = text(child.stderr);
  cleanUp.add(async () => void child.kill("SIGKILL"));
  const [status] = await once(child, "exit");
  return { status, said: await errorText };
}

test.runIf(postgres !== undefined)(
  "schemas open only with their original keys",
  async () => {
    const env = {
      DEPUTE_POSTGRES_URL: postgres?.url ?? "",
      DEPUTE_POSTGRES_SCHEMA_PREFIX: freeSchema(),
    };
    const ownFolder = await dataFolder(cleanUp);
    const platform = await start(ownFolder, env);
    const other = await dataFolder(cleanUp);
    const isRefused = async (key: string) => {
      const { status, said } = await refusal(other, env);
      expect(status).toBe(1);
      expect(said).toContain(`created with another ${key} key`);
      expect(said).toContain("DEPUTE_POSTGRES_SCHEMA_PREFIX");
      expect(said).toContain(`DEPUTE_REPLACE_KEYS=${key}`);
    };
    await isRefused("root");
    expect(await platform.register("undisturbed")).toMatchObject({ status: 200 });
    platform.child.kill("SIGTERM");
    await platform.ended;
    for (const key of ["root", "master", "verifier", "card", "callback", "session-seal"]) {
      await isRefused(key);
      copyFileSync(join(ownFolder, `${key}.key`), join(other, `${key}.key`));
    }
    const moved = await start(other, env);
    expect(await moved.register("moved")).toMatchObject({ status: 200 });
  },
  300_000,
);

test.runIf(postgres !== undefined)(
  "another machine needs only the master key, where the keys are in the database",
  async () => {
    const [ownFolder, other] = [await dataFolder(cleanUp), await dataFolder(cleanUp)];
    const master = join(await dataFolder(cleanUp), "master");
    writeFileSync(master, Buffer.alloc(32, 7).toString("base64url"), { mode: 0o600 });
    const env = {
      DEPUTE_POSTGRES_URL: postgres?.url ?? "",
      DEPUTE_POSTGRES_SCHEMA_PREFIX: freeSchema(),
    };
    const platform = await start(ownFolder, { ...env, DEPUTE_MASTER_KEY_FILE: master });
    expect(await platform.register("before")).toMatchObject({ status: 200 });
    platform.child.kill("SIGTERM");
    await platform.ended;
    const moved = await start(other, { ...env, DEPUTE_MASTER_KEY_FILE: master });
    expect(await moved.register("moved")).toMatchObject({ status: 200 });
    for (const folder of [ownFolder, other]) {
      expect(readdirSync(folder).filter((name) => name.endsWith(".key"))).toEqual([]);
    }
    moved.child.kill("SIGTERM");
    await moved.ended;
    const wrong = join(other, "wrong");
    writeFileSync(wrong, Buffer.alloc(32, 8).toString("base64url"), { mode: 0o600 });
    const { status, said } = await refusal(other, { ...env, DEPUTE_MASTER_KEY_FILE: wrong });
    expect(status).toBe(1);
    expect(said).toContain("sealed with another master key");
  },
  300_000,
);

/** Creates the table of applied migrations with the columns of an earlier revision. */
const EARLIER_RECORD = "CREATE TABLE schema_migrations (id INTEGER PRIMARY KEY, checksum TEXT NOT NULL)";

/**
 * Returns the line that a platform prints whose tokens store is of an earlier revision. `elsewhere` names its
 * setting.
 */
function oneLine(elsewhere: string): RegExp {
  return new RegExp(
    `^depute: the tokens service cannot open its store: .*earlier revision.* Set ${elsewhere} to an empty place\\n$`,
  );
}

test("a file of an earlier revision is refused in one line, without a stack", async () => {
  const folder = await dataFolder(cleanUp);
  const database = new DatabaseSync(join(folder, "tokens.sqlite"));
  database.exec(EARLIER_RECORD);
  database.close();
  const { status, said } = await refusal(folder, {});
  expect(said).toMatch(oneLine("DEPUTE_DATA_DIR"));
  expect(status).toBe(1);
}, 60_000);

test("a file that was created with another master key is refused in one line, without a stack", async () => {
  const folder = await dataFolder(cleanUp);
  const platform = await start(folder);
  platform.child.kill("SIGTERM");
  await platform.ended;
  copyFileSync(join(folder, "root.key"), join(folder, "master.key"));
  const { status, said } = await refusal(folder, {});
  expect(said).toMatch(
    /^depute: the store was created with another master key: .*DEPUTE_REPLACE_KEYS=master\n$/,
  );
  expect(status).toBe(1);
}, 120_000);

test.runIf(postgres !== undefined)(
  "a schema of an earlier revision is refused in one line, without a stack",
  async () => {
    const prefix = freeSchema();
    const client = new Client({ connectionString: postgres?.url });
    await client.connect();
    await client.query(
      `CREATE SCHEMA "${prefix}_tokens"; SET search_path TO "${prefix}_tokens"; ${EARLIER_RECORD}`,
    );
    await client.end();
    const env = { DEPUTE_POSTGRES_URL: postgres?.url ?? "", DEPUTE_POSTGRES_SCHEMA_PREFIX: prefix };
    const { status, said } = await refusal(await dataFolder(cleanUp), env);
    expect(said).toMatch(oneLine("DEPUTE_POSTGRES_SCHEMA_PREFIX"));
    expect(status).toBe(1);
  },
  60_000,
);
