import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openStore } from "./open.ts";
import {
  accepts,
  bytes,
  type Column,
  flag,
  int64,
  integer,
  memberOf,
  nullable,
  oneOf,
  optional,
  real,
  row,
  text,
} from "./row.ts";
import type { SqlValue, Store } from "./store.ts";

const Color = { NONE: 0, RED: 1 } as const;

test.each<[string, Omit<Column<never>, "type">, SqlValue[], (SqlValue | undefined)[]]>([
  ["text", text, ["", "a"], [1, null, undefined, new Uint8Array()]],
  ["integer", integer, [0, -3, Number.MAX_SAFE_INTEGER], [1.5, 2n ** 60n, "1", null, undefined]],
  ["int64", int64, [0, -3, 2n ** 60n], [1.5, "1", null, undefined]],
  ["real", real, [0, 1.5], ["1.5", null, undefined, 1n]],
  ["bytes", bytes, [new Uint8Array([1])], ["a", null, undefined]],
  ["flag", flag, [0, 1], [2, "1", null]],
  ["nullable", nullable(text), ["a", null], [1, undefined]],
  ["optional", optional(integer), [1], [null, "a"]],
  ["nullable flag", nullable(flag), [0, 1, null], [2, undefined]],
  ["oneOf", oneOf("accepted", "released"), ["accepted"], ["gone", null, 0]],
  ["memberOf", memberOf(Color), [0, 1], [2, "RED", null]],
])("a column of %s accepts its values and no other", (_, column, accepted, refused) => {
  expect(accepted.filter((value) => !accepts(column, value))).toEqual([]);
  expect(refused.filter((value) => accepts(column, value))).toEqual([]);
});

test("an optional column may be absent", () => {
  expect(accepts(optional(text), undefined)).toBe(true);
});

describe("a statement", () => {
  const ITEM = row({ id: integer, name: nullable(text) });
  let store: Store;
  beforeAll(async () => {
    const sql = "CREATE TABLE item (id BIGINT PRIMARY KEY, name TEXT)";
    store = await openStore({ memory: true, migrations: [{ id: 1, name: "item", sql }], onError: () => {} });
    await store.write((tx) => tx.run("INSERT INTO item VALUES (1, 'one'), (2, NULL)"));
  });
  afterAll(() => store.close());

  test("returns the rows that its columns describe", async () => {
    const rows = await store.read((tx) => tx.all(ITEM, "SELECT id, name FROM item ORDER BY id"));
    expect(rows).toEqual([
      { id: 1, name: "one" },
      { id: 2, name: null },
    ]);
    const second = await store.read((tx) => tx.get(ITEM, "SELECT id, name FROM item WHERE id = ?", [2]));
    expect(second).toEqual({ id: 2, name: null });
    expect(await store.read((tx) => tx.get(ITEM, "SELECT id, name FROM item WHERE id = 3"))).toBeUndefined();
  });

  test("requires its row", () => {
    // @ts-expect-error: a statement alone gives its rows no type
    const unchecked = store.read((tx) => tx.all("SELECT id FROM item"));
    return expect(unchecked).rejects.toThrow(TypeError);
  });

  test("is refused when its rows have other columns", async () => {
    const missing = store.read((tx) => tx.all(ITEM, "SELECT id FROM item"));
    await expect(missing).rejects.toThrow("column name of a row is not text or null");
    const other = store.read((tx) => tx.get(row({ name: integer }), "SELECT name FROM item WHERE id = 1"));
    await expect(other).rejects.toThrow("column name of a row is not a whole number");
  });
});
