import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, describe, expect, test } from "vitest";
import { inspectStore } from "./inspect.ts";
import type { Migration } from "./migrations.ts";
import { openStore } from "./open.ts";
import type { StoreLocation } from "./options.ts";
import { freeSchema, postgresForTests } from "./testing/index.ts";

const ONE: Migration = { id: 1, name: "one", sql: "CREATE TABLE one (a BIGINT)" };
const TWO: Migration = { id: 2, name: "two", sql: "CREATE TABLE two (a BIGINT)" };

const folder = mkdtempSync(join(tmpdir(), "depute-inspect-"));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;
const newFile = (): StoreLocation => ({ file: join(folder, `${files++}.db`) });

const postgres = await postgresForTests();
afterAll(() => postgres?.stop());

describe.each([
  ["a file", newFile],
  ...(postgres === undefined
    ? []
    : [["a schema", (): StoreLocation => ({ postgres: postgres.url, schema: freeSchema() })] as const]),
] as const)("%s", (_, place) => {
  const create = async (migrations: readonly Migration[]) => {
    const location = place();
    const store = await openStore({ ...location, migrations, onError: () => {} });
    return { location, store };
  };

  test("that does not exist is not created", async () => {
    const location = place();
    for (let round = 0; round < 2; round++)
      expect(await inspectStore(location, [ONE])).toEqual({ kind: "absent" });
  });

  test("shows pending migrations while its process runs", async () => {
    const { location, store } = await create([ONE]);
    expect(await inspectStore(location, [ONE])).toEqual({ kind: "known", applied: ["1"], pending: [] });
    expect(await inspectStore(location, [ONE, TWO])).toEqual({
      kind: "known",
      applied: ["1"],
      pending: [{ place: "2", name: "two" }],
    });
    await store.close();
    expect(await inspectStore(location, [ONE, TWO])).toMatchObject({ pending: [{ place: "2" }] });
  });

  test("that is newer than the program is refused", async () => {
    const { location, store } = await create([ONE, TWO]);
    await expect(inspectStore(location, [ONE])).rejects.toThrow(
      "the database is at migration 2, newer than this program, which ends at 1",
    );
    await store.close();
  });

  test("whose migration was changed is refused", async () => {
    const { location, store } = await create([ONE]);
    await expect(inspectStore(location, [{ ...ONE, sql: "CREATE TABLE other (a BIGINT)" }])).rejects.toThrow(
      "migration 1 (one) was changed",
    );
    await store.close();
  });
});

test("a file with a record of migrations in an unknown form is refused", async () => {
  const file = join(folder, "foreign.db");
  const database = new DatabaseSync(file);
  database.exec("CREATE TABLE schema_migrations (id INTEGER PRIMARY KEY, checksum TEXT)");
  database.close();
  await expect(inspectStore({ file }, [ONE])).rejects.toThrow("start with an empty database");
});

test("a file that is not a database is refused", async () => {
  const file = join(folder, "text.db");
  writeFileSync(file, "no database, but a text of some length".repeat(100));
  await expect(inspectStore({ file }, [ONE])).rejects.toThrow("not a database");
});
