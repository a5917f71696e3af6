import { ErrorReason, ManualClock } from "@depute/core";
import { Client } from "pg";
import { afterAll, describe, expect, test } from "vitest";
import { openStore } from "../index.ts";
import { type Migration, MigrationError } from "../migrations.ts";
import { CELLS, row, text } from "../row.ts";
import { freeSchema, postgresForTests } from "../testing/postgres-server.ts";
import { storeSuite } from "../testing/store-suite.ts";

const postgres = await postgresForTests();
afterAll(() => postgres?.stop());

const onError = () => {};
const TABLE: Migration = { id: 1, name: "table", sql: "CREATE TABLE t (a INTEGER PRIMARY KEY) STRICT" };

describe.skipIf(postgres === undefined)("Postgres", () => {
  const url = postgres?.url ?? "";

  describe("has every behaviour of a store", () =>
    storeSuite((settings) => openStore({ postgres: url, schema: freeSchema(), ...settings }), {
      bytes: "BYTEA",
    }));

  async function administer(sql: string, values: unknown[] = []): Promise<void> {
    const client = new Client({ connectionString: url });
    await client.connect();
    await client.query(sql, values);
    await client.end();
  }

  const cut = (schema: string) =>
    administer("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1", [
      `depute ${schema}`,
    ]);

  test("keeps committed data", async () => {
    const options = { postgres: url, schema: freeSchema(), migrations: [TABLE], onError };
    const store = await openStore(options);
    await store.write((tx) => tx.run("INSERT INTO t VALUES (1)"));
    await store.close();
    const again = await openStore(options);
    expect(await again.read((tx) => tx.all(CELLS, "SELECT a FROM t"))).toEqual([{ a: 1 }]);
    await again.close();
  });

  test("compares texts by their bytes", async () => {
    const words: Migration = { id: 1, name: "words", sql: "CREATE TABLE w (a TEXT PRIMARY KEY)" };
    const store = await openStore({ postgres: url, schema: freeSchema(), migrations: [words], onError });
    await store.write((tx) => tx.run("INSERT INTO w VALUES ('b'), ('B'), ('a'), ('ä'), ('_'), ('1')"));
    const rows = await store.read((tx) => tx.all(row({ a: text }), "SELECT a FROM w ORDER BY a"));
    expect(rows.map(({ a }) => a)).toEqual(["1", "B", "_", "a", "b", "ä"]);
    await store.close();
  });

  test("reports a text with a NUL character as the caller's error", async () => {
    const words: Migration = { id: 1, name: "words", sql: "CREATE TABLE w (a TEXT PRIMARY KEY)" };
    const store = await openStore({ postgres: url, schema: freeSchema(), migrations: [words], onError });
    await expect(store.write((tx) => tx.run("INSERT INTO w VALUES (?)", ["\0"]))).rejects.toMatchObject({
      reason: ErrorReason.INVALID_REQUEST,
    });
    await store.close();
  });

  test("statements that the function sends at once run in order, and the first failure undoes all", async () => {
    const store = await openStore({ postgres: url, schema: freeSchema(), migrations: [TABLE], onError });
    const insertAll = (values: readonly number[]) =>
      store.write((tx) => Promise.allSettled(values.map((a) => tx.run("INSERT INTO t VALUES (?)", [a]))));
    await expect(insertAll([1, 2, 1, 3])).rejects.toMatchObject({ kind: "unique" });
    await insertAll([5, 4]);
    expect(await store.read((tx) => tx.all(CELLS, "SELECT a FROM t"))).toEqual([{ a: 5 }, { a: 4 }]);
    await store.close();
  });

  test("a function that returns before its statements end is refused, and undone", async () => {
    const store = await openStore({ postgres: url, schema: freeSchema(), migrations: [TABLE], onError });
    const write = store.write(async (tx) => {
      tx.run("INSERT INTO t VALUES (1)").catch(() => {});
    });
    await expect(write).rejects.toThrow("await every statement");
    await store.write((tx) => tx.run("INSERT INTO t VALUES (2)"));
    expect(await store.read((tx) => tx.all(CELLS, "SELECT a FROM t"))).toEqual([{ a: 2 }]);
    await store.close();
  });

  test("a broken connection fails the write that it carries; the next write gets a new connection", async () => {
    const schema = freeSchema();
    const store = await openStore({ postgres: url, schema, migrations: [TABLE], onError });
    const insertRow = (a: number) => store.write((tx) => tx.run("INSERT INTO t VALUES (?)", [a]));
    await insertRow(1);
    const cutWrite = store.write(async (tx) => {
      await tx.run("INSERT INTO t VALUES (2)");
      await cut(schema);
      await tx.run("INSERT INTO t VALUES (3)");
    });
    await expect(cutWrite).rejects.toMatchObject({ reason: ErrorReason.DEPENDENCY_UNAVAILABLE });
    await insertRow(4);
    expect(await store.read((tx) => tx.all(CELLS, "SELECT a FROM t ORDER BY a"))).toEqual([
      { a: 1 },
      { a: 4 },
    ]);
    await store.close();
  });

  test("a schema that another process has used since is lost", async () => {
    const schema = freeSchema();
    const options = { postgres: url, schema, migrations: [TABLE], onError };
    const store = await openStore(options);
    await cut(schema);
    await (await openStore(options)).close();
    const write = () => store.write((tx) => tx.run("INSERT INTO t VALUES (1)"));
    await expect(write()).rejects.toMatchObject({ reason: ErrorReason.DEPENDENCY_UNAVAILABLE });
    await expect(write()).rejects.toMatchObject({ reason: ErrorReason.DEPENDENCY_UNAVAILABLE });
    await store.close();
  });

  test("waits for a schema in use, and refuses when it stays in use", async () => {
    const options = { postgres: url, schema: freeSchema(), migrations: [TABLE], onError };
    const store = await openStore(options);
    const timers = new ManualClock();
    let isSettled = false;
    const impatient = openStore({ ...options, timers }).finally(() => {
      isSettled = true;
    });
    const refused = expect(impatient).rejects.toMatchObject({
      reason: ErrorReason.DEPENDENCY_UNAVAILABLE,
      message: expect.stringContaining("another process uses the schema"),
    });
    while (!isSettled) {
      timers.advance(250);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await refused;
    const patient = openStore(options);
    await store.close();
    await (await patient).close();
  });

  test.each(["CREATE TABLE v (a BIGINT); nonsense", "CREATE TABLE t (a BIGINT)"])(
    "the migration %s fails and leaves no record",
    async (sql) => {
      const options = { postgres: url, schema: freeSchema(), onError };
      const bad = { id: 2, name: "bad", sql };
      await expect(openStore({ ...options, migrations: [TABLE, bad] })).rejects.toThrow(MigrationError);
      const store = await openStore({ ...options, migrations: [TABLE] });
      expect(await store.read((tx) => tx.all(CELLS, "SELECT id FROM schema_migrations"))).toEqual([
        { id: 1 },
      ]);
      await store.close();
    },
  );

  test("an unreachable database is unavailable", async () => {
    const options = { postgres: "postgres://depute@127.0.0.1:1/x", schema: "x", migrations: [], onError };
    await expect(openStore(options)).rejects.toMatchObject({ reason: ErrorReason.DEPENDENCY_UNAVAILABLE });
  });
});
