import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { openStore } from "./open.ts";
import { storeSize } from "./size.ts";

const folder = mkdtempSync(join(tmpdir(), "depute-size-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const settings = {
  migrations: [{ id: 1, name: "notes", sql: "CREATE TABLE notes (text TEXT NOT NULL)" }],
  onError: (error: unknown) => {
    throw error;
  },
};

test("a file grows with its rows, and each group of writes is measured once it is durable", async () => {
  const location = { file: join(folder, "notes.sqlite") };
  const commits: number[] = [];
  let opened = 0;
  const store = await openStore({
    ...{ ...location, ...settings },
    onOpen: () => {
      opened += 1;
    },
    onCommit: (seconds) => void commits.push(seconds),
  });
  const before = await storeSize(location, store);
  await store.write((tx) => tx.run("INSERT INTO notes VALUES (?)", ["x".repeat(1_000_000)]));
  expect(await storeSize(location, store)).toBeGreaterThan(before + 1_000_000);
  expect(opened).toBe(1);
  expect(commits.length).toBe(1);
  expect(commits[0]).toBeGreaterThan(0);
  await store.close();
});

test("a store in memory has no size", async () => {
  const store = await openStore({ memory: true, ...settings });
  expect(await storeSize({ memory: true }, store)).toBe(0);
  await store.close();
});
