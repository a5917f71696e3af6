import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Migrations, openStore, row, type Store, type StoreOptions, text } from "@depute/store";
import { afterEach, describe, expect, test } from "vitest";
import { CURRENT, type Schema } from "./current.ts";
import { released, releases } from "./releases.ts";

const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const postgresUrl = process.env.DEPUTE_POSTGRES_URL;
let schemas = 0;

const onError = (error: unknown) => {
  throw error;
};

/** Makes a database that can be opened several times, one after the other. */
function database(): (schema: Schema) => Promise<Store> {
  if (postgresUrl !== undefined) {
    const schema = `released_${process.pid}_${schemas++}`;
    return (migrations) => open({ postgres: postgresUrl, schema, migrations: steps(migrations), onError });
  }
  const folder = mkdtempSync(join(tmpdir(), "depute-schemas-"));
  cleanups.push(() => rmSync(folder, { recursive: true }));
  return (migrations) => open({ file: join(folder, "store.db"), migrations: steps(migrations), onError });
}

async function open(options: StoreOptions): Promise<Store> {
  const store = await openStore(options);
  cleanups.push(() => store.close());
  return store;
}

const steps = (schema: Schema): Migrations => schema[""] ?? schema;

const COLUMN = row({ tab: text, col: text, typ: text });
const COLUMNS_SQLITE = `SELECT m.name AS tab, c.name AS col, c.type || ' ' || c."notnull" || ' ' || c.pk AS typ
  FROM sqlite_schema m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' ORDER BY 1, 2`;
const COLUMNS_POSTGRES = `SELECT table_name::text AS tab, column_name::text AS col, data_type || ' ' || is_nullable AS typ
  FROM information_schema.columns WHERE table_schema = current_schema() ORDER BY 1, 2`;

/** Returns every column of every table, in order. */
async function columnsOf(store: Store): Promise<string[]> {
  const sql = postgresUrl === undefined ? COLUMNS_SQLITE : COLUMNS_POSTGRES;
  const rows = await store.read((tx) => tx.all(COLUMN, sql));
  return rows.map(({ tab, col, typ }) => `${tab}.${col} ${typ}`);
}

/**
 * The name of the current schema in the list of releases. `recorded` converts the current schema to JSON and back,
 * as a recorded schema was.
 */
const PRESENT = "the present program";
const recorded = (release: string, store: string): Schema =>
  release === PRESENT ? JSON.parse(JSON.stringify(CURRENT[store])) : released(release, store);
const cases = [...releases(), PRESENT].flatMap((release) =>
  Object.keys(CURRENT).map((store) => ({ release, store })),
);

describe.each(cases)("the $store store of $release", ({ release, store }) => {
  const currentSchema = CURRENT[store] ?? {};
  const before = recorded(release, store);

  test("has every migration that was released, unchanged", () => {
    for (const [module, migrations] of Object.entries(before)) {
      expect(currentSchema[module]?.slice(0, migrations.length)).toEqual(migrations);
    }
  });

  test("opens with the present program, and then has the tables of a new one", async () => {
    const openOld = database();
    await (await openOld(before)).close();
    const migrated = await openOld(currentSchema);
    const fresh = await database()(currentSchema);
    expect(await columnsOf(migrated)).toEqual(await columnsOf(fresh));
  });
});
