import { copyFileSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, expect, test, vi } from "vitest";
import { openStore } from "../open.ts";
import { Checkpoints } from "./checkpoints.ts";

const folder = mkdtempSync(join(tmpdir(), "depute-checkpoints-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const errors: unknown[] = [];
const open = (name: string) =>
  openStore({
    file: join(folder, name),
    migrations: [
      { id: 1, name: "rows", sql: "CREATE TABLE rows (id BIGINT PRIMARY KEY, value BLOB NOT NULL)" },
    ],
    onError: (error) => errors.push(error),
  });

type Store = Awaited<ReturnType<typeof open>>;
let last = 0;
const commit = (store: Store, bytes = 2_000) =>
  store.write((tx) => tx.run("INSERT INTO rows (id, value) VALUES (?, ?)", [++last, new Uint8Array(bytes)]));

/** Rows that the file holds by itself, without its log. */
function folded(name: string): number {
  const copy = join(folder, `${name}-copy`);
  copyFileSync(join(folder, name), copy);
  const database = new DatabaseSync(copy);
  try {
    return Number(database.prepare("SELECT count(*) AS n FROM rows").get()?.n);
  } catch {
    return 0; // Not even the table is there.
  } finally {
    database.close();
  }
}

test("what was committed is folded into the file while the store is open, in files beside each other", async () => {
  const stores = [await open("a"), await open("b")];
  for (let i = 0; i < 200; i++) await Promise.all(stores.map((store) => commit(store)));
  for (const name of ["a", "b"]) await vi.waitFor(() => expect(folded(name)).toBeGreaterThanOrEqual(64));
  await Promise.all(stores.map((store) => store.close()));
  expect([folded("a"), folded("b"), errors]).toEqual([200, 200, []]);
  // What closes last removes the log, so nobody holds the file any more.
  expect(() => statSync(join(folder, "a-wal"))).toThrow("ENOENT");
});

test("a file that was closed can be opened again, and is folded again", async () => {
  const first = await open("again");
  for (let i = 0; i < 130; i++) await commit(first);
  await first.close();
  const second = await open("again");
  for (let i = 0; i < 130; i++) await commit(second);
  await second.close();
  expect([folded("again"), errors]).toEqual([260, []]);
});

test("under writing without end the log does not grow without end", async () => {
  const store = await open("long");
  for (let i = 0; i < 40; i++) await Promise.all(Array.from({ length: 128 }, () => commit(store, 20_000)));
  expect(statSync(join(folder, "long-wal")).size).toBeLessThan(100 * 1024 * 1024);
  await store.close();
  expect([folded("long"), errors]).toEqual([40 * 128, []]);
});

test("what goes wrong is reported, and the next commits try again", async () => {
  const reported: string[] = [];
  const checkpoints = new Checkpoints(join(folder, "no-such-folder", "x"), (_, what) => reported.push(what));
  for (let round = 1; round <= 2; round++) {
    for (let i = 0; i < 64; i++) checkpoints.committed();
    await vi.waitFor(() => expect(reported).toHaveLength(round));
  }
  await checkpoints.close();
  expect(new Set(reported)).toEqual(new Set(["the log could not be folded into the database"]));
});

test("a file without a commit starts nothing, and is let go at once", async () => {
  const store = await open("idle");
  await store.close();
  expect(folded("idle")).toBe(0);
});
