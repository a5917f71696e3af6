import { setImmediate } from "node:timers/promises";
import { ManualClock } from "@depute/core";
import type { Store } from "@depute/store";
import { afterEach, beforeEach, expect, it } from "vitest";
import { AuditLog } from "./audit-log.ts";
import type { Decision } from "./rules/audit-record.ts";
import { idBefore, readDecisions } from "./store/audit-rows.ts";
import { forgetDecisions } from "./store/audit-tree.ts";
import { engine } from "./testing/holders.ts";
import { openBus, openMemory, silent } from "./testing/parts.ts";
import { refusal } from "./testing/refusal.ts";

let memory: Store;
let clock: ManualClock;
let isBroken = false;
beforeEach(async () => {
  memory = await openMemory();
  clock = new ManualClock();
  isBroken = false;
});
afterEach(() => memory.close());

const store: Store = {
  read: (fn) => memory.read(fn),
  write: async (fn) => {
    if (isBroken) throw new Error("the disk is full");
    return memory.write(fn);
  },
  close: () => memory.close(),
};
const open = (maxWaiting = 1000) =>
  new AuditLog({ engine, store, bus: openBus(), clock, timers: clock, log: silent, maxWaiting });
const decision = (n: number): Decision => {
  return {
    kind: "verify_token",
    caller: "c",
    principal: "p",
    decision: "allowed",
    reason: `${n}`,
    blocks: ["b"],
  };
};
const recorded = async () => {
  const rows = await memory.read((tx) => readDecisions(tx, 0, 10_000));
  return rows.map(({ id, reason }) => `${id}:${reason}`);
};
const numbered = (count: number) => Array.from({ length: count }, (_, n) => `${n + 1}:${n}`);
const settle = async () => {
  for (let turn = 0; turn < 20; turn++) await setImmediate();
};

it("writes decisions within a second, in order, with their times", async () => {
  const audit = open();
  for (let n = 0; n < 3; n++) audit.add(decision(n));
  expect(await recorded()).toEqual([]);
  const decided = clock.now();
  clock.advance(999);
  await settle();
  expect(await recorded()).toEqual(numbered(3));
  const [row] = await memory.read((tx) => readDecisions(tx, 0, 1));
  expect(row).toEqual({ ...decision(0), id: 1, time: decided, source: "tokens", call: {} });
});

it("writes a full batch at once", async () => {
  const audit = open();
  for (let n = 0; n < 1100; n++) audit.add(decision(n));
  await settle();
  expect((await recorded()).length).toBeGreaterThanOrEqual(1024);
});

it("writes waiting decisions on close", async () => {
  const audit = open(2000);
  for (let n = 0; n < 1000; n++) audit.add(decision(n));
  await audit.close();
  expect(await recorded()).toEqual(numbered(1000));
  expect(clock.pending).toBe(0);
});

it("keeps unwritten decisions in order, up to the bound", async () => {
  const audit = open(5);
  isBroken = true;
  for (let n = 0; n < 5; n++) {
    audit.assertRoom();
    audit.add(decision(n));
    clock.advance(999);
    await settle();
  }
  const refused = await refusal((async () => audit.assertRoom())());
  expect(refused).toMatchObject({ reason: "LIMIT_EXCEEDED", metadata: { limit: "audit_waiting", max: "5" } });
  isBroken = false;
  clock.advance(999);
  await settle();
  expect(await recorded()).toEqual(numbered(5));
  audit.assertRoom();
});

it("commits or rolls back with its change", async () => {
  const audit = open();
  const failing = memory.write(async (tx) => {
    await audit.write(tx, decision(0));
    throw new Error("no");
  });
  await expect(failing).rejects.toThrow("no");
  await memory.write((tx) => audit.write(tx, decision(0)));
  expect(await recorded()).toEqual(numbered(1));
});

it("uses no place of the log twice, even after all records were deleted", async () => {
  const audit = open();
  for (let n = 0; n < 3; n++) await memory.write((tx) => audit.write(tx, decision(n)));
  await memory.write((tx) => forgetDecisions(tx, engine.sha256, { before: clock.now() + 1, limit: 100 }));
  expect(await recorded()).toEqual([]);
  await memory.write((tx) => audit.write(tx, decision(3)));
  expect(await recorded()).toEqual(["4:3"]);
});

it("finds the place before a time, also in a log with deleted records", async () => {
  const audit = open();
  const begin = clock.now();
  for (let n = 0; n < 20; n++) {
    await memory.write((tx) => audit.write(tx, decision(n)));
    clock.advance(10);
  }
  const before = (ms: number) => memory.read((tx) => idBefore(tx, begin + ms));
  expect(await Promise.all([0, 5, 10, 95, 190, 191, 1000].map(before))).toEqual([0, 1, 1, 10, 19, 20, 20]);
  await memory.write((tx) => forgetDecisions(tx, engine.sha256, { before: begin + 100, limit: 100 }));
  expect(await before(150)).toBe(15);
  expect(await memory.read(async (tx) => readDecisions(tx, await idBefore(tx, begin), 1))).toMatchObject([
    { id: 11 },
  ]);
});
