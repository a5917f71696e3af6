import { setImmediate } from "node:timers/promises";
import { ManualClock } from "@depute/core";
import { attenuateToken, createRevocation, formatTime, parseToken, type SignedJSONToken } from "@depute/dct";
import { FOUND } from "@depute/store";
import { describe, expect, it } from "vitest";
import { Housekeeping } from "./housekeeping.ts";
import { linksOf } from "./rules/delegations.ts";
import { alice, bob, engine, id, otherRoot } from "./testing/holders.ts";
import { createReplica, openBus, openMemory, rootToken, silent } from "./testing/parts.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const SKEW_MS = 30_000;

async function start(retention: { auditRetentionMs?: number; delegationRetentionMs?: number } = {}) {
  const clock = new ManualClock();
  const store = await openMemory();
  const replica = createReplica({ store, bus: openBus(), clock });
  const parsed = parseToken(rootToken(clock));
  if (!parsed.ok) throw new Error(parsed.denial.type);
  const root: SignedJSONToken = parsed.token;
  const housekeeping = new Housekeeping({
    ...{
      store,
      clock,
      timers: clock,
      log: silent,
      state: replica.state,
      keyRevoker: { promote: async () => 0 },
    },
    ...{ auditRetentionMs: 90 * DAY_MS, delegationRetentionMs: 30 * DAY_MS, ...retention },
  });
  const record = (token: SignedJSONToken) =>
    store.write((tx) => replica.delegations.record(tx, linksOf(engine, token), { organization: "" }));
  const revoke = async (token: SignedJSONToken, level: number) => {
    const blocks = linksOf(engine, token).map(({ block }) => block);
    const entry = createRevocation(
      engine,
      blocks[level]?.revocationId ?? "",
      "block",
      otherRoot,
      clock.now(),
    );
    await replica.revocations.record(entry, "", blocks);
  };
  const count = async (countOf: string) =>
    (await store.read((tx) => tx.all(FOUND, `SELECT * FROM ${countOf}`))).length;
  const open = "revocations WHERE scope <> 'pruned'";
  return { ...replica, clock, store, root, housekeeping, record, revoke, count, open };
}

describe("a revocation (R7)", () => {
  it("is kept until its block's own expiry, and its seal stays valid afterwards", async () => {
    const { clock, store, root, housekeeping, record, revoke, count, open } = await start();
    await record(root);
    await revoke(root, 0);
    clock.advance(HOUR_MS + SKEW_MS);
    await housekeeping.tidy();
    expect(await count(open)).toBe(1);
    clock.advance(1);
    await housekeeping.tidy();
    expect(await count(open)).toBe(0);
    expect(await count("revocations")).toBe(1);
    // A replica that starts after the pruning can read the entries that remain.
    const late = createReplica({ store, bus: openBus(), clock });
    await late.reader.look();
    expect([late.state.sequence, late.state.size]).toEqual([1, 0]);
  });

  it.each<[string, { ends?: boolean }, boolean, number]>([
    ["has no own expiry, regardless of its recorded chain", {}, true, 1],
    ["has an own expiry, but was not recorded", { ends: true }, false, 1],
    ["has an own expiry, and was recorded", { ends: true }, true, 0],
  ])(
    "of a block that %s is kept while its expiry is unknown",
    async (_, { ends = false }, isRecorded, keptRows) => {
      const { clock, root, housekeeping, record, revoke, count, open } = await start();
      const expiresAt = formatTime(clock.now() + 60_000);
      const child = attenuateToken(engine, root, { delegatee: id(bob), ...(ends && { expiresAt }) }, alice);
      if (isRecorded) await record(child);
      await revoke(child, 1);
      clock.advance(DAY_MS);
      await housekeeping.tidy();
      expect(await count(open)).toBe(keptRows);
    },
  );
});

describe("old records", () => {
  it("are deleted: decisions by age, delegations and blocks by expiry", async () => {
    const { clock, root, housekeeping, record, count, audit } = await start();
    await record(root);
    audit.add({ kind: "inspect", caller: "c", principal: "", decision: "allowed", reason: "", blocks: [] });
    await audit.close();
    const rows = () => Promise.all(["delegations", "delegation_blocks", "blocks", "audit"].map(count));
    clock.advance(HOUR_MS + 30 * DAY_MS);
    await housekeeping.tidy();
    expect(await rows()).toEqual([1, 1, 1, 1]);
    clock.advance(1);
    await housekeeping.tidy();
    expect(await rows()).toEqual([0, 0, 0, 1]);
    clock.advance(60 * DAY_MS);
    await housekeeping.tidy();
    expect(await rows()).toEqual([0, 0, 0, 0]);
  });

  it("of single-use blocks are deleted long after their expiry", async () => {
    const { clock, store, housekeeping, notes, count } = await start();
    await notes.useUp([{ revocationId: "A".repeat(43), expiresAt: clock.now() }]);
    clock.advance(30 * DAY_MS);
    await housekeeping.tidy();
    expect(await count("used_blocks")).toBe(1);
    clock.advance(1);
    await housekeeping.tidy();
    expect(await count("used_blocks")).toBe(0);
    await store.close();
  });

  it("stay for ever if configured", async () => {
    const { clock, root, housekeeping, record, count } = await start({
      ...{ auditRetentionMs: 0, delegationRetentionMs: 0 },
    });
    await record(root);
    clock.advance(10_000 * DAY_MS);
    await housekeeping.tidy();
    expect(await count("delegations")).toBe(1);
  });

  it("are checked every minute", async () => {
    const { clock, root, housekeeping, record, count } = await start({ delegationRetentionMs: 1 });
    await record(root);
    clock.advance(HOUR_MS + 2);
    housekeeping.start();
    clock.advance(60_000);
    for (let turn = 0; turn < 100 && (await count("delegations")) > 0; turn++) await setImmediate();
    expect(await count("delegations")).toBe(0);
    await housekeeping.close();
  });
});
