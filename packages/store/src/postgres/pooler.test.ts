import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { ErrorReason } from "@depute/core";
import { afterAll, describe, expect, test } from "vitest";
import { openStore } from "../index.ts";
import { freeSchema, ownPostgresForTests } from "../testing/postgres-server.ts";
import { StoreClient } from "./client.ts";
import { postgresUser } from "./local-programs.ts";
import { assertOwnSession } from "./pooler.ts";

const hasPgBouncer = spawnSync("pgbouncer", ["--version"]).status === 0;
if (!hasPgBouncer) {
  const lack = "There is no pgbouncer on the PATH";
  if (process.env.CI === "true") throw new Error(`${lack}: with CI=true its tests may not be skipped.`);
  // biome-ignore lint/suspicious/noConsole: a skipped test has to be seen by the person who runs it
  console.warn(`\n*** ${lack}: THE TESTS OF POOLERS ARE SKIPPED. ***\n`);
}

const postgres = hasPgBouncer ? await ownPostgresForTests() : undefined;
const undo: (() => void)[] = [];
afterAll(async () => {
  for (const each of undo.reverse()) each();
  await postgres?.stop();
});

/** Starts PgBouncer on a socket, and returns the URL of the database through PgBouncer. */
async function startPgBouncer(settings: Readonly<Record<string, string>>): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "depute-pgbouncer-"));
  const user = postgresUser();
  const file = join(folder, "pgbouncer.ini");
  const all = {
    ...{ listen_port: "6432", unix_socket_dir: folder, auth_type: "any", max_client_conn: "50" },
    ...settings,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name} = ${value}`);
  const place = `host=${dirname(postgres?.path ?? "")} dbname=postgres user=depute`;
  writeFileSync(file, `[databases]\npostgres = ${place}\n[pgbouncer]\n${lines.join("\n")}\n`);
  if (user !== undefined) for (const path of [folder, file]) chownSync(path, user.uid, user.gid);
  const child = spawn("pgbouncer", [file], { ...user, cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
  undo.push(() => {
    child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  });
  await isReady(child);
  return `postgres:///postgres?host=${encodeURIComponent(folder)}&port=6432&user=depute`;
}

async function isReady(child: ChildProcess): Promise<void> {
  const ended = once(child, "exit").then(([code]) =>
    Promise.reject(new Error(`pgbouncer ended with ${code}`)),
  );
  ended.catch(() => {});
  const up = (async () => {
    let log = "";
    for await (const chunk of child.stderr ?? []) {
      log += String(chunk);
      if (log.includes("process up")) break;
    }
  })();
  await Promise.race([up, ended]);
  child.stderr?.resume();
}

const open = (url: string, isShared: boolean) =>
  openStore({ postgres: url, schema: freeSchema(), migrations: [], onError: () => {}, isShared });

describe.skipIf(postgres === undefined)("behind PgBouncer, no mode can open a store", () => {
  test.each([
    ["transaction mode", { pool_mode: "transaction" }, "refuses the search path"],
    [
      "transaction mode without the options of a session",
      { pool_mode: "transaction", ignore_startup_parameters: "options" },
      "search path",
    ],
    ["session mode", { pool_mode: "session" }, "refuses the search path"],
  ])("%s", async (_name, settings, why) => {
    const url = await startPgBouncer(settings);
    for (const isShared of [false, true]) {
      const error = await open(url, isShared).then(
        (store) => store.close(),
        (refusal: unknown) => refusal,
      );
      expect(error).toMatchObject({ reason: ErrorReason.DEPENDENCY_UNAVAILABLE });
      expect(String(error)).toContain(why);
      expect(String(error)).toContain("set DEPUTE_POSTGRES_URL to the address of Postgres itself");
    }
  });
});

describe.skipIf(postgres === undefined)("a connection has its own session", () => {
  const SEARCH_PATH = '"$user", public';

  /** Runs `assertOwnSession` on a connection to `url` with Postgres' default search path. */
  async function check(url: string): Promise<void> {
    const connected = async () => {
      const client = new StoreClient({ connectionString: url });
      await client.connect();
      return client;
    };
    const client = await connected();
    try {
      await assertOwnSession(client, SEARCH_PATH, connected);
    } finally {
      await client.end();
    }
  }

  test("at Postgres itself", () => check(postgres?.url ?? ""));

  test("at PgBouncer in session mode", async () => check(await startPgBouncer({ pool_mode: "session" })));

  test("but not at PgBouncer in transaction mode", async () => {
    const url = await startPgBouncer({ pool_mode: "transaction" });
    await expect(check(url)).rejects.toThrow("shares sessions between connections");
  });
});
