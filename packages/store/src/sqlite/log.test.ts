import { copyFileSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, expect, test, vi } from "vitest";
import { openStore } from "../open.ts";
import { Checkpoints } from "./log.ts";

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

/** Returns the number of rows in the database file alone, without the rows that only its log has. */
function folded(name: string): number {
  const copy = join(folder, `${name}-copy`);
  copyFileSync(join(folder, name), copy);
  const database = new DatabaseSync(copy);
  try {
    return Number(database.prepare("SELECT count(*) AS n FROM rows").get()?.n);
  } catch {
    return 0; // The table itself is missing as well.
  } finally {
    database.close();
  }
}

test("folds commits of several open stores into their files", async () => {
  const stores = [await open("a"), await open("b")];
  for (let i = 0; i < 200; i++) await Promise.all(stores.map((store) => commit(store)));
  for (const name of ["a", "b"]) await vi.waitFor(() => expect(folded(name)).toBeGreaterThanOrEqual(64));
  await Promise.all(stores.map((store) => store.close()));
  expect([folded("a"), folded("b"), errors]).toEqual([200, 200, []]);
  // SQLite removes the log when the last connection closes. The missing log shows that no connection uses the
  // file any more.
  expect(() => statSync(join(folder, "a-wal"))).toThrow("ENOENT");
});

test("folds a file again after it was closed and reopened", async () => {
  const first = await open("again");
  for (let i = 0; i < 130; i++) await commit(first);
  await first.close();
  const second = await open("again");
  for (let i = 0; i < 130; i++) await commit(second);
  await second.close();
  expect([folded("again"), errors]).toEqual([260, []]);
});

test("bounds the log under continuous writes", async () => {
  const store = await open("long");
  for (let i = 0; i < 40; i++) await Promise.all(Array.from({ length: 128 }, () => commit(store, 20_000)));
  expect(statSync(join(folder, "long-wal")).size).toBeLessThan(100 * 1024 * 1024);
  await store.close();
  expect([folded("long"), errors]).toEqual([40 * 128, []]);
});

test("reports a failure and retries at later commits", async () => {
  const reported: string[] = [];
  const checkpoints = new Checkpoints(join(folder, "no-such-folder", "x"), (_, message) =>
    reported.push(message),
  );
  for (let round = 1; round <= 2; round++) {
    for (let i = 0; i < 64; i++) checkpoints.committed();
    await vi.waitFor(() => expect(reported).toHaveLength(round));
  }
  await checkpoints.close();
  expect(new Set(reported)).toEqual(
    new Set(["the write-ahead log could not be copied into the database file"]),
  );
});

test("starts no thread for a file without a commit, and releases the file at once", async () => {
  const store = await open("idle");
  await store.close();
  expect(folded("idle")).toBe(0);
});
