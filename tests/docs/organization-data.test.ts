import { readFileSync } from "node:fs";
import { type Migrations, openStore, row, text } from "@depute/store";
import { MODULES } from "depute";
import { describe, expect, it, test } from "vitest";
import { organizationDataTable, PURGED_SERVICES } from "./organization-data.ts";

/** The tables of the store itself and of SQLite's text search. */
const OWN = /^(sqlite_|store_|schema_|migrations$|capability_text_)/;

/** Returns the names of the tables of a store, in order. */
async function tablesOf(migrations: Migrations): Promise<string[]> {
  const store = await openStore({
    ...{ memory: true, migrations },
    onError: (error) => {
      throw error;
    },
  });
  const rows = await store.read((tx) =>
    tx.all(row({ name: text }), "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"),
  );
  await store.close();
  return rows.map(({ name }) => name).filter((name) => !OWN.test(name));
}

describe.each(PURGED_SERVICES)("the rules of $service", ({ service, rules }) => {
  it("name each table of the service's stores once", async () => {
    const stores: readonly Migrations[] = Object.values(MODULES[service].stores ?? {});
    const tables = (await Promise.all(stores.map(tablesOf))).flat();
    expect(rules.flatMap((rule) => rule.tables).sort()).toEqual(tables.sort());
  });

  it("give a reason exactly where an organization's records remain", () => {
    for (const { kind, owned, deletes, remains } of rules) {
      expect([kind, remains !== ""]).toEqual([kind, owned !== "" && deletes !== "all"]);
    }
  });
});

test("no two kinds have one name", () => {
  const kinds = PURGED_SERVICES.flatMap(({ rules }) => rules.map(({ kind }) => kind));
  expect(kinds.filter((kind, at) => kinds.indexOf(kind) !== at)).toEqual([]);
});

test("docs/operations.md has the table of the rules", () => {
  expect(readFileSync("docs/operations.md", "utf8")).toContain(organizationDataTable());
});
