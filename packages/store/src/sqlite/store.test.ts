import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { ErrorReason, ManualClock } from "@depute/core";
import { afterAll, describe, expect, test } from "vitest";
import { type Migration, MigrationError } from "../migrations.ts";
import { openStore } from "../open.ts";
import { CRASH_MIGRATIONS } from "../testing/crash-migrations.ts";
import { storeSuite } from "../testing/store-suite.ts";

const root = mkdtempSync(join(tmpdir(), "depute-store-"));
afterAll(() => rmSync(root, { recursive: true }));

let files = 0;
const newFile = () => join(root, `folder ${files++}`, "data.db");
const onError = () => {};

describe("in a file", () =>
  storeSuite((settings) => openStore({ file: newFile(), ...settings }), { bytes: "BLOB" }));
describe("in memory", () =>
  storeSuite((settings) => openStore({ memory: true, ...settings }), { bytes: "BLOB" }));

const TABLE: Migration = { id: 1, name: "table", sql: "CREATE TABLE t (a INTEGER PRIMARY KEY) STRICT" };
const ANOTHER: Migration = {
  id: 2,
  name: "another",
  sql: "CREATE TABLE u (a TEXT); INSERT INTO u VALUES ('x;y');",
};

describe("a file", () => {
  test("with a record of migrations of another form is refused, and stays as it is", async () => {
    const file = newFile();
    mkdirSync(dirname(file));
    const earlier = new DatabaseSync(file);
    earlier.exec("CREATE TABLE schema_migrations (id INTEGER PRIMARY KEY, checksum TEXT)");
    earlier.close();
    const opened = openStore({ file, migrations: [TABLE], onError });
    await expect(opened).rejects.toThrow(MigrationError);
    await expect(opened).rejects.toThrow("start with an empty one");
    const still = new DatabaseSync(file);
    expect(still.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all()).toEqual([
      { name: "schema_migrations" },
    ]);
    still.close();
  });

  test("is there again when opened again, and only the owner may read it", async () => {
    const file = newFile();
    const store = await openStore({ file, migrations: [TABLE], onError });
    await store.write((tx) => tx.run("INSERT INTO t VALUES (1)"));
    const modes = readdirSync(join(file, "..")).map((name) => [
      name,
      statSync(join(file, "..", name)).mode & 0o777,
    ]);
    expect(modes).toEqual([
      ["data.db", 0o600],
      ["data.db-lock", 0o600],
      ["data.db-shm", 0o600],
      ["data.db-wal", 0o600],
    ]);
    await store.close();
    expect(readdirSync(join(file, ".."))).toEqual(["data.db", "data.db-lock"]);
    const again = await openStore({ file, migrations: [TABLE], onError });
    expect(await again.read((tx) => tx.all("SELECT a FROM t"))).toEqual([{ a: 1 }]);
    await again.close();
  });

  test("is a write-ahead log, which is flushed before a commit is told of", async () => {
    const store = await openStore({ file: newFile(), migrations: [], onError });
    const pragma = (name: string) => store.write((tx) => tx.get(`SELECT * FROM pragma_${name}`));
    expect(await pragma("journal_mode")).toEqual({ journal_mode: "wal" });
    // SQLite flushes at checkpoints, and the store flushes what it commits.
    expect(await pragma("synchronous")).toEqual({ synchronous: 1 });
    await store.close();
  });

  test("is read while a write is under way, as it was before", async () => {
    const store = await openStore({ file: newFile(), migrations: [TABLE], onError });
    const count = () => store.read((tx) => tx.get<{ n: number }>("SELECT count(*) AS n FROM t"));
    let begin = () => {};
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    let end = () => {};
    const mayEnd = new Promise<void>((resolve) => {
      end = resolve;
    });
    const write = store.write(async (tx) => {
      await tx.run("INSERT INTO t VALUES (1)");
      begin();
      await mayEnd;
    });
    await begun;
    expect(await count()).toEqual({ n: 0 });
    end();
    await write;
    expect(await count()).toEqual({ n: 1 });
    await store.close();
  });

  test("that another process has locked is refused, and can be written later", async () => {
    const file = newFile();
    const store = await openStore({ file, migrations: [TABLE], onError });
    const other = new DatabaseSync(file);
    other.exec("BEGIN IMMEDIATE");
    const put = () => store.write((tx) => tx.run("INSERT INTO t VALUES (1)"));
    await expect(put()).rejects.toMatchObject({ reason: ErrorReason.DEPENDENCY_UNAVAILABLE });
    other.exec("ROLLBACK");
    other.close();
    expect(await put()).toEqual({ changes: 1 });
    await store.close();
  });

  test("that is open is refused to another, and free once it is closed", async () => {
    const file = newFile();
    const store = await openStore({ file, migrations: [TABLE], onError });
    await expect(openStore({ file, migrations: [TABLE], onError })).rejects.toMatchObject({
      reason: ErrorReason.DEPENDENCY_UNAVAILABLE,
      message: expect.stringContaining("in use by another process"),
    });
    await store.close();
    await (await openStore({ file, migrations: [TABLE], onError })).close();
  });

  test("that is no database is refused", async () => {
    const file = newFile();
    mkdirSync(dirname(file));
    writeFileSync(file, "no database, but a file that is long enough to be looked at as one");
    await expect(openStore({ file, migrations: [], onError })).rejects.toThrow();
  });
});

describe("migrations", () => {
  test("are applied once, in order, and remembered", async () => {
    const file = newFile();
    for (const migrations of [[TABLE], [TABLE, ANOTHER], [TABLE, ANOTHER]]) {
      const store = await openStore({ file, migrations, onError });
      const known = await store.read((tx) => tx.all("SELECT id, name FROM schema_migrations"));
      expect(known).toEqual(migrations.map(({ id, name }) => ({ id, name })));
      await store.close();
    }
    const store = await openStore({ file, migrations: [TABLE, ANOTHER], onError });
    expect(await store.read((tx) => tx.all("SELECT a FROM u"))).toEqual([{ a: "x;y" }]);
    await store.close();
  });

  test.each([
    { why: "a newer database", migrations: [TABLE] },
    { why: "a changed migration", migrations: [{ ...TABLE, sql: `${TABLE.sql} ` }, ANOTHER] },
    { why: "a missing migration", migrations: [ANOTHER] },
  ])("refuse $why, and leave the file usable", async ({ migrations }) => {
    const file = newFile();
    const right = { file, migrations: [TABLE, ANOTHER], onError };
    await (await openStore(right)).close();
    await expect(openStore({ file, migrations, onError })).rejects.toThrow(MigrationError);
    await (await openStore(right)).close();
  });

  test.each(["CREATE TABLE v (a); nonsense", "CREATE TABLE v (a); COMMIT"])(
    "%s fails, and nothing is remembered of it",
    async (sql) => {
      const file = newFile();
      const bad = { id: 2, name: "bad", sql };
      await expect(openStore({ file, migrations: [TABLE, bad], onError })).rejects.toThrow(
        "migration 2 (bad)",
      );
      const store = await openStore({ file, migrations: [TABLE], onError });
      expect(await store.read((tx) => tx.all("SELECT id FROM schema_migrations"))).toEqual([{ id: 1 }]);
      await store.close();
    },
  );
});

test("more waiting reads than the limit are refused, and the others done", async () => {
  const timers = new ManualClock();
  const store = await openStore({ file: newFile(), migrations: [], onError, maxWaiting: 1, timers });
  const stuck = store.read(() => new Promise(() => {}));
  const waiting = store.read(async () => "done");
  await expect(store.read(async () => "refused")).rejects.toMatchObject({
    reason: ErrorReason.LIMIT_EXCEEDED,
    metadata: { limit: "store_waiting_reads", max: "1" },
  });
  timers.advance(5_000);
  await expect(stuck).rejects.toMatchObject({ reason: ErrorReason.INTERNAL });
  expect(await waiting).toBe("done");
  await store.close();
});

test("what was acknowledged survives SIGKILL, and nothing is there by halves", async () => {
  const file = newFile();
  const program = fileURLToPath(new URL("../testing/crash-writer.ts", import.meta.url));
  const writer = spawn(process.execPath, [program, file], { stdio: ["ignore", "pipe", "inherit"] });
  const acknowledged: number[] = [];
  for await (const line of createInterface(writer.stdout)) {
    // What is still in the pipe after the kill was acknowledged too.
    acknowledged.push(Number(line));
    if (acknowledged.length === 2_000) writer.kill("SIGKILL");
  }
  if (writer.exitCode === null && writer.signalCode === null) await once(writer, "exit");
  expect(writer.signalCode).toBe("SIGKILL");

  const store = await openStore({ file, migrations: CRASH_MIGRATIONS, onError });
  const rows = await store.read((tx) =>
    tx.all<{ id: number; halves: number }>(
      "SELECT id / 2 AS id, sum(half) AS halves FROM entry GROUP BY id / 2",
    ),
  );
  await store.close();
  expect(rows.filter(({ halves }) => halves !== 3)).toEqual([]);
  const found = new Set(rows.map(({ id }) => id));
  expect(acknowledged.length).toBeGreaterThanOrEqual(2_000);
  expect(acknowledged.filter((id) => !found.has(id))).toEqual([]);
});
