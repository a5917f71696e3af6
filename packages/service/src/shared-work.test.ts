import { createBus } from "@depute/bus";
import { pause, systemClock, systemTimers } from "@depute/core";
import { integer, openStore, row, type Store } from "@depute/store";
import { freeSchema, postgresForTests } from "@depute/store/testing";
import { pino } from "pino";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import { DeadlineLoop } from "./deadline-loop.ts";
import { Outbox } from "./outbox.ts";
import { SharedWork } from "./shared-work.ts";
import { StreamFollower } from "./stream-follower.ts";

const postgres = await postgresForTests();
afterAll(() => postgres?.stop());

const log = pino({ level: "silent" });
const onError = () => {};
const PATIENCE = { timeout: 15_000, interval: 10 };
const ROW = row({ id: integer });
const BASE = { clock: systemClock, timers: systemTimers, log };

test("a process without replicas needs no lease", async () => {
  const store = await openStore({ memory: true, migrations: [], onError });
  const bus = await createBus({ onError });
  const work = new SharedWork({ ...BASE, service: "test", store, bus });
  expect(work.lease("work")).toBeUndefined();
  await work.close();
  await bus.close();
  await store.close();
});

describe.skipIf(postgres === undefined)("background work of replicas", () => {
  const url = postgres?.url ?? "";
  let schema: string;
  const closers: (() => Promise<unknown>)[] = [];
  beforeEach(() => {
    schema = freeSchema();
  });
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  interface Replica {
    readonly store: Store;
    readonly work: SharedWork;
  }

  async function join(): Promise<Replica> {
    const migrations = [{ id: 1, name: "rows", sql: "CREATE TABLE rows (id INTEGER PRIMARY KEY)" }];
    const store = await openStore({ postgres: url, schema, migrations, onError, isShared: true });
    const bus = await createBus({ postgres: { url, namespace: schema }, onError });
    const work = new SharedWork({ ...BASE, service: "test", store, bus });
    closers.push(
      () => store.close(),
      () => bus.close(),
      () => work.close(),
    );
    return { store, work };
  }

  test("rows of every replica are delivered once, in order, and soon after the write", async () => {
    const replicas = await Promise.all([join(), join(), join()]);
    const told: { id: number; by: number; ms: number }[] = [];
    const outboxes = replicas.map(({ store, work }, by) => {
      const outbox = new Outbox<{ id: number }>({
        timers: systemTimers,
        log,
        failureMessage: "failed",
        lease: work.lease("outbox"),
        first: (limit) => store.read((tx) => tx.all(ROW, "SELECT id FROM rows ORDER BY id LIMIT ?", [limit])),
        tell: async ({ id }) => void told.push({ id, by, ms: performance.now() }),
        drop: async ({ id }) =>
          void (await store.write((tx) => tx.run("DELETE FROM rows WHERE id = ?", [id]))),
      });
      outbox.start();
      closers.push(() => outbox.close());
      return outbox;
    });
    const insert = async (id: number, by: number) => {
      await replicas[by]?.store.write((tx) => tx.run("INSERT INTO rows VALUES (?)", [id]));
      outboxes[by]?.wake();
    };
    await insert(0, 0);
    await expect.poll(() => told.length, PATIENCE).toBe(1);
    const waits: number[] = [];
    for (let id = 1; id <= 30; id++) {
      const beginMs = performance.now();
      await insert(id, id % 3);
      await expect.poll(() => told.length, PATIENCE).toBe(id + 1);
      waits.push((told.at(-1)?.ms ?? 0) - beginMs);
    }
    expect(told.map(({ id }) => id)).toEqual(Array.from({ length: 31 }, (_, id) => id));
    const [holder] = new Set(told.map(({ by }) => by));
    expect(told.every(({ by }) => by === holder)).toBe(true);
    // Without wake-ups, only polls would find rows, and the average wait would be a second.
    expect(waits.toSorted((a, b) => a - b)[15]).toBeLessThan(500);
    // The next replica delivers after the holder has closed.
    await outboxes[holder ?? 0]?.close();
    await replicas[holder ?? 0]?.work.close();
    await insert(31, ((holder ?? 0) + 1) % 3);
    await expect.poll(() => told.length, PATIENCE).toBe(32);
    expect(told.at(-1)?.by).not.toBe(holder);
  });

  test("due work runs at the holder alone; a wake-up of any replica reaches it", async () => {
    const replicas = await Promise.all([join(), join()]);
    const runs = [0, 0];
    const loops = replicas.map(({ work }, by) => {
      const loop = new DeadlineLoop({
        ...BASE,
        failureMessage: "failed",
        maxWaitMs: 60_000,
        lease: work.lease("loop"),
        runDueWork: async () => {
          runs[by] = (runs[by] ?? 0) + 1;
        },
      });
      loop.start();
      closers.push(() => loop.close());
      return loop;
    });
    // The start of the loop and the lease may both cause a run.
    await expect.poll(() => Math.max(...runs), PATIENCE).toBeGreaterThan(0);
    expect(runs).toContain(0);
    const other = runs.indexOf(0);
    const before = Math.max(...runs);
    loops[other]?.wake();
    await expect.poll(() => Math.max(...runs), PATIENCE).toBeGreaterThan(before);
    expect(runs[other]).toBe(0);
  });

  test("a stream is followed by the holder alone, and then by the next holder", async () => {
    const replicas = await Promise.all([join(), join()]);
    const open = [false, false];
    const followers = replicas.map(({ work }, by) => {
      const follower = new StreamFollower({
        timers: systemTimers,
        log,
        streamName: "stream",
        lease: work.lease("stream"),
        follow: async (signal) => {
          open[by] = true;
          await pause(60_000, systemTimers, signal);
          open[by] = false;
        },
      });
      follower.start();
      closers.push(() => follower.close());
      return follower;
    });
    await expect.poll(() => open.filter(Boolean).length, PATIENCE).toBe(1);
    const first = open.indexOf(true);
    await replicas[first]?.work.close();
    await expect.poll(() => open, PATIENCE).toEqual(open.map((_, by) => by !== first));
    await Promise.all(followers.map((follower) => follower.close()));
    expect(open).toEqual([false, false]);
  });
});
