import { copyFileSync, mkdtempSync, renameSync, rmSync, unlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { ErrorReason } from "@depute/core";
import { afterAll, afterEach, describe, expect, test, vi } from "vitest";
import type { Migration } from "../migrations.ts";
import { openStore } from "../open.ts";
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
const put = (store: Store, a: number) => store.write((tx) => tx.run("INSERT INTO t VALUES (?)", [a]));

/** What befalls a file under a running store. */
const FATES: readonly [string, (path: string) => void][] = [
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

describe.each(FATES)("a file that is %s while it is in use", (_, befall) => {
  test.each(["", "-wal", "-shm", "-lock"])(
    "(%s): no write is acknowledged any more, and no read answered",
    async (suffix) => {
      const { file, store, states, lost } = await open();
      await put(store, 1);
      befall(`${file}${suffix}`);
      await expect(put(store, 2)).rejects.toMatchObject(UNAVAILABLE);
      await lost();
      expect(states[0]).toMatchObject({
        error: { detail: expect.stringContaining(`${file}${suffix} was removed`) },
      });
      await expect(put(store, 3)).rejects.toMatchObject(UNAVAILABLE);
      await expect(store.read((tx) => tx.all("SELECT a FROM t"))).rejects.toMatchObject(UNAVAILABLE);
    },
  );

  test("is noticed while nobody writes", async () => {
    const { file, lost } = await open();
    befall(file);
    await lost();
  });
});

test("a folder that is moved away takes its store along", async () => {
  const { file, store, lost } = await open();
  await put(store, 1);
  renameSync(dirname(file), `${dirname(file)} moved`);
  await expect(put(store, 2)).rejects.toMatchObject(UNAVAILABLE);
  await lost();
});

test("callers learn no paths", async () => {
  const { file, store } = await open();
  unlinkSync(file);
  const error = await put(store, 1).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject(UNAVAILABLE);
  expect(String(error)).not.toContain(root);
});

test("the log is the same file however much is written and folded", async () => {
  const { store, states } = await open();
  for (let round = 0; round < 200; round++) await put(store, round);
  expect(states).toEqual([]);
});
