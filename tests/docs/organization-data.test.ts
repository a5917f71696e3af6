import { readFileSync } from "node:fs";
import { openStore, row, text } from "@depute/store";
import { describe, expect, it, test } from "vitest";
import { organizationDataTable, PURGED_SERVICES } from "./organization-data.ts";

/** The tables of the store itself and of SQLite's text search. */
const OWN = /^(sqlite_|store_|schema_|migrations$|capability_text_)/;

describe.each(PURGED_SERVICES)("the rules of $service", ({ rules, migrations }) => {
  it("name each table once", async () => {
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
    const tables = rows.map(({ name }) => name).filter((name) => !OWN.test(name));
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
