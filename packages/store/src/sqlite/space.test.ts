import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Migration } from "../migrations.ts";
import { openStore } from "../open.ts";
import { integer, row } from "../row.ts";
import type { Store } from "../store.ts";

const TABLE: Migration = {
  id: 1,
  name: "rows",
  sql: "CREATE TABLE rows (id BIGINT PRIMARY KEY, value BLOB NOT NULL)",
};
const MIB = 1024 * 1024;
/** The log file keeps the largest size that it has had, up to 64 MiB. */
const LOG_MIB = 64;
const WAIT = { timeout: 30_000, interval: 50 };

let folder = "";
let file = "";
let errors: unknown[] = [];
let store: Store | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "depute-space-"));
  file = join(folder, "data.db");
  errors = [];
});
afterEach(async () => {
  await store?.close();
  store = undefined;
  rmSync(folder, { recursive: true });
});
afterAll(() => expect(errors).toEqual([]));

async function open(): Promise<Store> {
  store = await openStore({ file, migrations: [TABLE], onError: (error) => errors.push(error) });
  return store;
}

const mib = (path = file) => statSync(path).size / MIB;

async function fill(into: Store, rows: number, first = 0): Promise<void> {
  const ids = Array.from({ length: rows }, (_, index) => first + index);
  const insert = (id: number) =>
    into.write((tx) =>
      tx.run("INSERT INTO rows (id, value) VALUES (?, ?)", [id, new Uint8Array(64 * 1024).fill(id)]),
    );
  await Promise.all(ids.map(insert));
}

const purge = (from: Store, above: number) =>
  from.write((tx) => tx.run("DELETE FROM rows WHERE id >= ?", [above]));

const count = async (of: Store) =>
  (await of.read((tx) => tx.get(row({ n: integer }), "SELECT count(*) AS n FROM rows")))?.n;

describe("after a purge", () => {
  test("the file shrinks to its rows, an eighth and 4 MiB, while writes go on", async () => {
    const opened = await open();
    await fill(opened, 640);
    const before = mib() + mib(`${file}-wal`);
    expect(before).toBeGreaterThan(40);
    await purge(opened, 32);
    await fill(opened, 16, 1_000);
    // The 48 rows that remain take 3 MiB.
    await vi.waitFor(() => expect(mib()).toBeLessThan(3 * 1.125 + 4 + 0.5), WAIT);
    expect(mib(`${file}-wal`)).toBeLessThanOrEqual(LOG_MIB + 1);
    expect(await count(opened)).toBe(48);
    // The file keeps some free pages. Without them, a steady load would move pages back and forth.
    await opened.close();
    expect(mib()).toBeGreaterThan(6);
  });

  test("a file that was closed at once shrinks after the next start, without a write", async () => {
    const opened = await open();
    await fill(opened, 320);
    await purge(opened, 16);
    await opened.close();
    expect(mib()).toBeGreaterThan(20);
    await open();
    await vi.waitFor(() => expect(mib()).toBeLessThan(6), WAIT);
  });
});

describe("a file of an earlier version", () => {
  beforeEach(() => {
    const earlier = new DatabaseSync(file);
    earlier.exec("PRAGMA journal_mode = WAL; CREATE TABLE filler (value BLOB)");
    earlier.exec(`INSERT INTO filler VALUES (zeroblob(${20 * MIB})); DELETE FROM filler; DROP TABLE filler`);
    expect(earlier.prepare("PRAGMA auto_vacuum").get()).toEqual({ auto_vacuum: 0 });
    earlier.close();
  });

  test("is rewritten at its first start and shrinks from then on", async () => {
    expect(mib()).toBeGreaterThan(20);
    const opened = await open();
    await fill(opened, 320);
    await purge(opened, 16);
    await vi.waitFor(() => expect(mib()).toBeLessThan(6), WAIT);
    await opened.close();
    const reopened = new DatabaseSync(file);
    expect(reopened.prepare("PRAGMA auto_vacuum").get()).toEqual({ auto_vacuum: 2 });
    expect(reopened.prepare("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
    reopened.close();
  });
});
