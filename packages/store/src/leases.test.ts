import { systemClock, systemTimers } from "@depute/core";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import { openStore, type Store } from "./index.ts";
import { type Lease, LeaseLostError, Leases } from "./leases.ts";
import { integer, row, text } from "./row.ts";
import { freeSchema, postgresForTests } from "./testing/postgres-server.ts";

const postgres = await postgresForTests();
afterAll(() => postgres?.stop());

const onError = () => {};
const LEASE_MS = 500;
const PATIENCE = { timeout: 10_000, interval: 20 };
const ROW = row({ name: text, epoch: integer });

const opened: Store[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()));
});

test("a store of one process holds each lease at once, and needs no table", async () => {
  const store = await openStore({ memory: true, migrations: [], onError });
  opened.push(store);
  const leases = new Leases({ store, clock: systemClock, timers: systemTimers, onError });
  const lease = leases.compete("work");
  expect(lease.isHeld).toBe(true);
  await store.write((tx) => lease.requireHeld(tx, lease.epoch));
  await leases.close();
});

describe.skipIf(postgres === undefined)("leases of a schema that processes share", () => {
  let schema: string;
  beforeEach(() => {
    schema = freeSchema();
  });

  /** Opens the store and the leases of one process. */
  async function join(clock = systemClock): Promise<{ store: Store; leases: Leases }> {
    const store = await openStore({
      ...{ postgres: postgres?.url ?? "", schema, migrations: [], onError },
      isShared: true,
    });
    opened.push(store);
    return { store, leases: new Leases({ store, clock, timers: systemTimers, onError, leaseMs: LEASE_MS }) };
  }

  const isHeld = (lease: Lease) => expect.poll(() => lease.isHeld, PATIENCE);

  test("belong to one process at a time; a process that closes hands over", async () => {
    const processes = await Promise.all([join(), join(), join()]);
    const competing = processes.map(({ leases }) => leases.compete("work"));
    for (let remaining = competing.length; remaining > 0; remaining--) {
      await expect.poll(() => competing.filter((lease) => lease.isHeld).length, PATIENCE).toBe(1);
      const holder = competing.findIndex((lease) => lease.isHeld);
      await processes[holder]?.leases.close();
      expect(competing[holder]?.isHeld).toBe(false);
    }
    const [row] =
      (await processes[0]?.store.read((tx) => tx.all(ROW, "SELECT name, epoch FROM store_leases"))) ?? [];
    expect(row).toEqual({ name: "work", epoch: 3 });
  });

  test("are kept by renewals", async () => {
    const [first, second] = await Promise.all([join(), join()]);
    const kept = first.leases.compete("work");
    await isHeld(kept).toBe(true);
    const waiting = second.leases.compete("work");
    const { epoch } = kept;
    await new Promise((resolve) => setTimeout(resolve, 3 * LEASE_MS));
    expect({ kept: kept.isHeld, epoch: kept.epoch, waiting: waiting.isHeld }).toEqual({
      ...{ kept: true, epoch, waiting: false },
    });
    await Promise.all([first.leases.close(), second.leases.close()]);
  });

  test("pass to another process if the holder stops; the holder's later effects are refused", async () => {
    let isStopped = false;
    const first = await join();
    const stopping = new Leases({
      ...{ store: first.store, clock: systemClock, onError, leaseMs: LEASE_MS },
      timers: { ...systemTimers, after: (ms, fn) => systemTimers.after(ms, () => !isStopped && fn()) },
    });
    const lost = stopping.compete("work");
    await isHeld(lost).toBe(true);
    const { epoch } = lost;
    await first.store.write((tx) => lost.requireHeld(tx, epoch));
    isStopped = true;
    const second = await join();
    const next = second.leases.compete("work");
    let taken = 0;
    next.onTaken(() => taken++);
    await isHeld(next).toBe(true);
    expect({ taken, epoch: next.epoch, lost: lost.isHeld }).toEqual({
      taken: 1,
      epoch: epoch + 1,
      lost: false,
    });
    await expect(first.store.write((tx) => lost.requireHeld(tx, epoch))).rejects.toThrow(LeaseLostError);
    await second.store.write((tx) => next.requireHeld(tx, next.epoch));
    await second.leases.close();
  });

  test("are independent of one another", async () => {
    const [first, second] = await Promise.all([join(), join()]);
    const one = first.leases.compete("one");
    await isHeld(one).toBe(true);
    const other = second.leases.compete("other");
    await isHeld(other).toBe(true);
    expect(second.leases.compete("one").isHeld).toBe(false);
    await Promise.all([first.leases.close(), second.leases.close()]);
  });

  test("are read by a waiting process only when one may have expired, or when it learns of a release", async () => {
    const LONG_MS = 60_000;
    const waits: number[] = [];
    const timers = {
      ...systemTimers,
      after: (ms: number, fn: () => void) => {
        waits.push(ms);
        return systemTimers.after(ms, fn);
      },
    };
    const [first, second] = await Promise.all([join(), join()]);
    const base = { clock: systemClock, onError, leaseMs: LONG_MS };
    let waiting: Leases | undefined;
    const holding = new Leases({
      ...{ ...base, store: first.store, timers: systemTimers },
      onReleased: () => waiting?.check(),
    });
    await isHeld(holding.compete("work")).toBe(true);
    waiting = new Leases({ ...base, store: second.store, timers });
    const next = waiting.compete("work");
    await expect.poll(() => waits.at(-1), PATIENCE).toBeGreaterThan(LONG_MS / 2);
    expect([waits.length, next.isHeld]).toEqual([2, false]);
    await holding.close();
    await isHeld(next).toBe(true);
    await waiting.close();
  });
});
