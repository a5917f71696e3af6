import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openStore } from "./open.ts";
import { ReadCache } from "./read-cache.ts";
import { integer, row } from "./row.ts";
import type { Store, WriteTx } from "./store.ts";

const folder = mkdtempSync(join(tmpdir(), "depute-read-cache-"));
let store: Store;
beforeAll(async () => {
  store = await openStore({
    file: join(folder, "store.sqlite"),
    migrations: [
      { id: 1, name: "rows", sql: "CREATE TABLE rows (id TEXT PRIMARY KEY, value BIGINT NOT NULL)" },
    ],
    onError: () => {},
  });
});
afterAll(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

const read = (key: string) =>
  store.read(
    async (tx) =>
      (await tx.get(row({ value: integer }), "SELECT value FROM rows WHERE id = ?", [key]))?.value,
  );

/** Reads a key as services do: first from the cache, then from the store. */
async function load<T>(cache: ReadCache<T>, key: string, from: (key: string) => Promise<T | undefined>) {
  const cached = cache.get(key);
  if (cached !== undefined) return cached;
  const keep = cache.reading(key);
  const found = await from(key);
  if (found !== undefined) keep(found);
  return found;
}

async function upsertRow(tx: WriteTx, key: string, value: number): Promise<void> {
  await tx.run(
    "INSERT INTO rows (id, value) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET value = excluded.value",
    [key, value],
  );
}

const step = fc.record({
  kind: fc.constantFrom("read", "write", "failing write", "turn"),
  key: fc.constantFrom("a", "b"),
});

test("under any interleaving of reads and writes, the cache never returns less than durable data", async () => {
  let value = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const cache = new ReadCache<number>(1);
      const durable = new Map<string, number>();
      const failed = new Set<number>();
      const going: Promise<unknown>[] = [];
      for (const { kind, key } of steps) {
        if (kind === "turn") await new Promise((resolve) => setImmediate(resolve));
        else if (kind === "read") {
          const least = durable.get(key);
          const answer = load(cache, key, read).then((found) => {
            if (least !== undefined) expect(found).toBeGreaterThanOrEqual(least);
            expect(failed).not.toContain(found);
          });
          going.push(answer);
        } else {
          const written = ++value;
          if (kind === "failing write") failed.add(written);
          const writing = store
            .write(async (tx) => {
              cache.forget(tx, key);
              await upsertRow(tx, key, written);
              if (kind === "failing write") throw new Error("no");
            })
            .then(
              () => durable.set(key, written),
              () => {},
            );
          going.push(writing);
        }
      }
      await Promise.all(going);
      for (const [key, last] of durable) {
        expect(await load(cache, key, read)).toBe(last);
        expect(await load(cache, key, read)).toBe(last);
      }
    }),
  );
});

test("a cached value needs no read until a write", async () => {
  const cache = new ReadCache<number>(10);
  let reads = 0;
  const counted = (key: string) => {
    reads++;
    return read(key);
  };
  const again = () => load(cache, "c", counted);
  await store.write((tx) => upsertRow(tx, "c", 1));
  expect([await again(), await again(), reads]).toEqual([1, 1, 1]);
  await store.write(async (tx) => {
    cache.forget(tx, "c");
    await upsertRow(tx, "c", 2);
  });
  expect([await again(), await again(), reads]).toEqual([2, 2, 2]);
});

test("the oldest entry makes room", () => {
  const cache = new ReadCache<number>(2);
  for (const [i, key] of ["x", "y", "z"].entries()) cache.reading(key)(i);
  expect(["x", "y", "z"].map((key) => cache.get(key))).toEqual([undefined, 1, 2]);
});
