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
import { CELLS, integer, row } from "../row.ts";
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
  test("with a record of migrations in an unknown form is refused and unchanged", async () => {
    const file = newFile();
    mkdirSync(dirname(file));
    const earlier = new DatabaseSync(file);
    earlier.exec("CREATE TABLE schema_migrations (id INTEGER PRIMARY KEY, checksum TEXT)");
    earlier.close();
    const opened = openStore({ file, migrations: [TABLE], onError });
    await expect(opened).rejects.toThrow(MigrationError);
    await expect(opened).rejects.toThrow("start with an empty database");
    const still = new DatabaseSync(file);
    expect(still.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all()).toEqual([
      { name: "schema_migrations" },
    ]);
    still.close();
  });

  test("keeps its data between openings, and only its owner may read it", async () => {
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
    expect(await again.read((tx) => tx.all(CELLS, "SELECT a FROM t"))).toEqual([{ a: 1 }]);
    await again.close();
  });

  test("uses a write-ahead log, flushed before the commit resolves", async () => {
    const store = await openStore({ file: newFile(), migrations: [], onError });
    const pragma = (name: string) => store.write((tx) => tx.get(CELLS, `SELECT * FROM pragma_${name}`));
    expect(await pragma("journal_mode")).toEqual({ journal_mode: "wal" });
    // SQLite flushes to disk only at checkpoints, because the store flushes the commits.
    expect(await pragma("synchronous")).toEqual({ synchronous: 1 });
    await store.close();
  });

  test("returns the previous state to reads during a write", async () => {
    const store = await openStore({ file: newFile(), migrations: [TABLE], onError });
    const count = () => store.read((tx) => tx.get(row({ n: integer }), "SELECT count(*) AS n FROM t"));
    let begin = () => {};
    const started = new Promise<void>((resolve) => {
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
    await started;
    expect(await count()).toEqual({ n: 0 });
    end();
    await write;
    expect(await count()).toEqual({ n: 1 });
    await store.close();
  });

  test("locked by another process is refused, and writable later", async () => {
    const file = newFile();
    const store = await openStore({ file, migrations: [TABLE], onError });
    const other = new DatabaseSync(file);
    other.exec("BEGIN IMMEDIATE");
    const insertRow = () => store.write((tx) => tx.run("INSERT INTO t VALUES (1)"));
    await expect(insertRow()).rejects.toMatchObject({ reason: ErrorReason.DEPENDENCY_UNAVAILABLE });
    other.exec("ROLLBACK");
    other.close();
    expect(await insertRow()).toEqual({ changes: 1 });
    await store.close();
  });

  test("in use is refused to a second process, and free once closed", async () => {
    const file = newFile();
    const store = await openStore({ file, migrations: [TABLE], onError });
    await expect(openStore({ file, migrations: [TABLE], onError })).rejects.toMatchObject({
      reason: ErrorReason.DEPENDENCY_UNAVAILABLE,
      message: expect.stringContaining("another process uses the database"),
    });
    await store.close();
    await (await openStore({ file, migrations: [TABLE], onError })).close();
  });

  test("refuses a file that is not a database", async () => {
    const file = newFile();
    mkdirSync(dirname(file));
    writeFileSync(file, "not a database, but long enough for SQLite to inspect");
    await expect(openStore({ file, migrations: [], onError })).rejects.toThrow();
  });
});

describe("migrations", () => {
  test("apply once, in order, and are recorded", async () => {
    const file = newFile();
    for (const migrations of [[TABLE], [TABLE, ANOTHER], [TABLE, ANOTHER]]) {
      const store = await openStore({ file, migrations, onError });
      const storedMigrations = await store.read((tx) =>
        tx.all(CELLS, "SELECT id, name FROM schema_migrations"),
      );
      expect(storedMigrations).toEqual(migrations.map(({ id, name }) => ({ id, name })));
      await store.close();
    }
    const store = await openStore({ file, migrations: [TABLE, ANOTHER], onError });
    expect(await store.read((tx) => tx.all(CELLS, "SELECT a FROM u"))).toEqual([{ a: "x;y" }]);
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
    "%s fails and leaves no record",
    async (sql) => {
      const file = newFile();
      const bad = { id: 2, name: "bad", sql };
      await expect(openStore({ file, migrations: [TABLE, bad], onError })).rejects.toThrow(
        "migration 2 (bad)",
      );
      const store = await openStore({ file, migrations: [TABLE], onError });
      expect(await store.read((tx) => tx.all(CELLS, "SELECT id FROM schema_migrations"))).toEqual([
        { id: 1 },
      ]);
      await store.close();
    },
  );
});

test("refuses reads above the waiting limit, and serves the others", async () => {
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

test("acknowledged writes survive SIGKILL, and no write is half applied", async () => {
  const file = newFile();
  const program = fileURLToPath(new URL("../testing/crash-writer.ts", import.meta.url));
  const writer = spawn(process.execPath, [program, file], { stdio: ["ignore", "pipe", "inherit"] });
  const acknowledged: number[] = [];
  for await (const line of createInterface(writer.stdout)) {
    // The pipe may still hold ids of acknowledged writes after the process was killed.
    acknowledged.push(Number(line));
    if (acknowledged.length === 2_000) writer.kill("SIGKILL");
  }
  if (writer.exitCode === null && writer.signalCode === null) await once(writer, "exit");
  expect(writer.signalCode).toBe("SIGKILL");

  const store = await openStore({ file, migrations: CRASH_MIGRATIONS, onError });
  const rows = await store.read((tx) =>
    tx.all(
      row({ id: integer, halves: integer }),
      "SELECT id / 2 AS id, sum(half) AS halves FROM entry GROUP BY id / 2",
    ),
  );
  await store.close();
  expect(rows.filter(({ halves }) => halves !== 3)).toEqual([]);
  const found = new Set(rows.map(({ id }) => id));
  expect(acknowledged.length).toBeGreaterThanOrEqual(2_000);
  expect(acknowledged.filter((id) => !found.has(id))).toEqual([]);
});
