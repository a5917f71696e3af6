import { copyFileSync, mkdtempSync, renameSync, rmSync, unlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { ErrorReason } from "@depute/core";
import { afterAll, afterEach, describe, expect, test, vi } from "vitest";
import type { Migration } from "../migrations.ts";
import { openStore } from "../open.ts";
import { CELLS } from "../row.ts";
import type { Store } from "../store.ts";
import type { StoreState } from "../watch.ts";

const root = mkdtempSync(join(tmpdir(), "depute-files-"));
const opened: Store[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()));
});
afterAll(() => rmSync(root, { recursive: true }));

const TABLE: Migration = { id: 1, name: "table", sql: "CREATE TABLE t (a INTEGER PRIMARY KEY) STRICT" };
const UNAVAILABLE = { reason: ErrorReason.DEPENDENCY_UNAVAILABLE };
const WAIT = { timeout: 10_000, interval: 20 };

let folders = 0;
async function open() {
  const file = join(root, `folder ${folders++}`, "data.db");
  const states: StoreState[] = [];
  const store = await openStore({
    file,
    migrations: [TABLE],
    onError: () => {},
    onState: (state) => states.push(state),
  });
  opened.push(store);
  const lost = () => vi.waitFor(() => expect(states.map(({ kind }) => kind)).toEqual(["lost"]), WAIT);
  return { file, store, states, lost };
}
const insertRow = (store: Store, a: number) => store.write((tx) => tx.run("INSERT INTO t VALUES (?)", [a]));

/** Changes to the files of a running store. */
const FILE_CHANGES: readonly [string, (path: string) => void][] = [
  ["removed", (path) => unlinkSync(path)],
  [
    "replaced by a copy of itself",
    (path) => {
      copyFileSync(path, `${path}.copy`);
      renameSync(`${path}.copy`, path);
    },
  ],
  ["moved away", (path) => renameSync(path, `${path}.moved`)],
];

describe.each(FILE_CHANGES)("a file that is %s while in use", (_, change) => {
  test.each(["", "-wal", "-shm", "-lock"])(
    "(%s): the store acknowledges no further write and answers no read",
    async (suffix) => {
      const { file, store, states, lost } = await open();
      await insertRow(store, 1);
      change(`${file}${suffix}`);
      await expect(insertRow(store, 2)).rejects.toMatchObject(UNAVAILABLE);
      await lost();
      expect(states[0]).toMatchObject({
        error: { detail: expect.stringContaining(`${file}${suffix} was removed`) },
      });
      await expect(insertRow(store, 3)).rejects.toMatchObject(UNAVAILABLE);
      await expect(store.read((tx) => tx.all(CELLS, "SELECT a FROM t"))).rejects.toMatchObject(UNAVAILABLE);
    },
  );

  test("is noticed without a write", async () => {
    const { file, lost } = await open();
    change(file);
    await lost();
  });
});

test("a moved folder moves its store with it", async () => {
  const { file, store, lost } = await open();
  await insertRow(store, 1);
  renameSync(dirname(file), `${dirname(file)} moved`);
  await expect(insertRow(store, 2)).rejects.toMatchObject(UNAVAILABLE);
  await lost();
});

test("reveals no paths to callers", async () => {
  const { file, store } = await open();
  unlinkSync(file);
  const error = await insertRow(store, 1).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject(UNAVAILABLE);
  expect(String(error)).not.toContain(root);
});

test("the log stays the same file across writes and checkpoints", async () => {
  const { store, states } = await open();
  for (let round = 0; round < 200; round++) await insertRow(store, round);
  expect(states).toEqual([]);
});
