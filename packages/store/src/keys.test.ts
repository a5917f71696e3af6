import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { keysToRecord, StoreKeyError } from "./keys.ts";
import { openStore } from "./open.ts";
import type { StoreLocation } from "./options.ts";
import { CELLS } from "./row.ts";
import { freeSchema, postgresForTests } from "./testing/postgres-server.ts";

const postgres = await postgresForTests();
const root = mkdtempSync(join(tmpdir(), "depute-keys-"));
afterAll(async () => {
  rmSync(root, { recursive: true });
  await postgres?.stop();
});

describe("keysToRecord", () => {
  const recorded = [{ name: "a", fingerprint: "1" }];
  test.each([
    ["the same", { a: "1" }, [], []],
    ["a new key beside it", { a: "1", b: "2" }, [], [{ name: "b", fingerprint: "2" }]],
    ["none", {}, [], []],
    ["a changed key with permission to replace it", { a: "2" }, ["a"], [{ name: "a", fingerprint: "2" }]],
  ])("%s", (_, fingerprints, replaced, expected) => {
    expect(
      keysToRecord(recorded, { fingerprints: fingerprints as Record<string, string>, replaced }),
    ).toEqual(expected);
  });

  test.each([[[]], [["b"]]])("refuses a changed key unless it may be replaced: %j", (replaced) => {
    expect(() => keysToRecord(recorded, { fingerprints: { a: "2" }, replaced })).toThrow(StoreKeyError);
  });
});

const PLACES: readonly [string, () => StoreLocation][] = [
  ["a file", () => ({ file: join(root, `${freeSchema()}.db`) })],
  ...(postgres === undefined
    ? []
    : [
        ["a schema", () => ({ postgres: postgres.url, schema: freeSchema() })] as [
          string,
          () => StoreLocation,
        ],
      ]),
];

describe.each(PLACES)("a store in %s", (_, newPlace) => {
  const open = (place: StoreLocation, fingerprint: string, replaced: string[] = []) =>
    openStore({
      ...place,
      migrations: [],
      onError: () => {},
      keys: { fingerprints: { root: fingerprint }, replaced },
    });

  test("opens with its recorded key and with no other", async () => {
    const place = newPlace();
    await (await open(place, "1")).close();
    await expect(open(place, "2")).rejects.toMatchObject({ name: "StoreKeyError", key: "root" });
    await (await open(place, "1")).close();
  });

  test("opens with a replacement permanently, once the key may be replaced", async () => {
    const place = newPlace();
    await (await open(place, "1")).close();
    await (await open(place, "2", ["root"])).close();
    await expect(open(place, "1")).rejects.toThrow(StoreKeyError);
    await (await open(place, "2")).close();
  });

  test("refuses a process with another key while it is in use, and continues", async () => {
    const place = newPlace();
    const store = await open(place, "1");
    await expect(open(place, "2")).rejects.toThrow();
    await store.write((tx) => tx.run("CREATE TABLE t (a BIGINT)"));
    expect(await store.read((tx) => tx.all(CELLS, "SELECT a FROM t"))).toEqual([]);
    await store.close();
  });
});
