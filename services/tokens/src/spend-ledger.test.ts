import { ManualClock } from "@depute/core";
import { FOUND } from "@depute/store";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { BudgetBlock } from "./spend-ledger.ts";
import { createReplica, openBus, openMemory } from "./testing/parts.ts";

const END = Date.UTC(2026, 0, 2);
const WEEK_MS = 7 * 24 * 60 * 60 * 1000;
const block = (name: string, maxBudgetMicrocents: number): BudgetBlock => {
  return { revocationId: name.padEnd(43, "A"), maxBudgetMicrocents, expiresAt: END };
};

/** A tree of blocks: one root, two blocks below it, and one block below each of these two. */
const root = block("root", 100);
const [leftBlock, right] = [block("left", 60), block("right", 60)];
const [leftmost, rightmost] = [block("leftmost", 50), block("rightmost", 1000)];
const chains = [
  [root],
  [root, leftBlock],
  [root, right],
  [root, leftBlock, leftmost],
  [root, right, rightmost],
];
const all = [root, leftBlock, right, leftmost, rightmost];

async function start() {
  const clock = new ManualClock();
  const store = await openMemory();
  const bus = openBus();
  const { spend } = createReplica({ store, bus, clock });
  // A second process over the same store.
  const other = createReplica({ store, bus, clock }).spend;
  return { clock, store, spend, other };
}

let requests = 0;
const ask = (amount: number, more: object = {}) => {
  const requestId = `r${++requests}`;
  return {
    caller: "c",
    organization: "",
    requestId,
    digest: String(amount),
    amount,
    lifetimeMs: 60_000,
    ...more,
  };
};
const counts = () => {};
const anybody = () => true;

describe("spend", () => {
  it("never exceeds an ancestor's budget, in any interleaving of reservations, outcomes and lost answers (B1, B2)", async () => {
    const step = fc.oneof(
      fc.record({ chain: fc.nat(4), amount: fc.integer({ min: 1, max: 40 }), other: fc.boolean() }),
      fc.record({ settle: fc.nat(30), cost: fc.option(fc.nat(40)), other: fc.boolean() }),
      fc.record({ pause: fc.constantFrom(0, 30_000, 60_000) }),
    );
    const property = fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const { clock, store, spend, other } = await start();
      const reservations: { id: string; chain: readonly BudgetBlock[]; amount: number; charged?: number }[] =
        [];
      const running: Promise<unknown>[] = [];
      for (const each of steps) {
        if ("pause" in each) {
          clock.advance(each.pause);
          await Promise.all(running);
        } else if ("chain" in each) {
          const chain = chains[each.chain] ?? [];
          const call = (each.other ? other : spend).reserve(ask(each.amount), chain, counts).then(
            ({ reservation: { id } }) => void reservations.push({ id, chain, amount: each.amount }),
            () => {},
          );
          running.push(call);
        } else {
          const reservation = reservations[each.settle % Math.max(1, reservations.length)];
          if (reservation === undefined) continue;
          const outcome = each.cost === null ? "release" : { commit: each.cost };
          const call = (each.other ? other : spend).settle(reservation.id, outcome, "c", anybody).then(
            ({ charged }) => {
              reservation.charged = charged;
            },
            () => {},
          );
          running.push(call);
        }
      }
      await Promise.all(running);
      for (const one of all) {
        // Reservations that are not settled count in full.
        const counted = reservations
          .filter(({ chain }) => chain.includes(one))
          .reduce((sum, { amount, charged }) => sum + (charged ?? amount), 0);
        const [level] = await spend.budget([one]);
        expect((level?.spent ?? 0) + (level?.reserved ?? 0)).toBe(counted);
        expect(counted).toBeLessThanOrEqual(one.maxBudgetMicrocents);
      }
      await store.close();
    });
    await fc.assert(property, { numRuns: 60 });
  });

  it("of siblings is bounded by their ancestors (B2)", async () => {
    const { spend } = await start();
    await spend.reserve(ask(60), [root, leftBlock], counts);
    await expect(spend.reserve(ask(60), [root, right], counts)).rejects.toMatchObject({
      metadata: { needed: "60", allowed: "40", unit: "microcents", level: "0" },
    });
    await spend.reserve(ask(40), [root, right], counts);
  });

  it("is reserved at every block or at none", async () => {
    const { spend } = await start();
    await expect(spend.reserve(ask(55), [root, leftBlock, leftmost], counts)).rejects.toThrow("block 2");
    const counted = (await spend.budget(all)).map(({ reserved, spent }) => reserved + spent);
    expect(counted).toEqual([0, 0, 0, 0, 0]);
  });

  it("is exact up to the last safe integer, and refused beyond (B3)", async () => {
    const { spend } = await start();
    const most = Number.MAX_SAFE_INTEGER;
    const big = block("big", most);
    await spend.reserve(ask(most - 1), [big], counts);
    await expect(spend.reserve(ask(most), [big], counts)).rejects.toMatchObject({
      metadata: { allowed: "1" },
    });
    await spend.reserve(ask(1), [big], counts);
    expect(await spend.budget([big])).toMatchObject([{ reserved: most, spent: 0 }]);
    await expect(spend.reserve(ask(1), [big], counts)).rejects.toMatchObject({ metadata: { allowed: "0" } });
  });

  it("is charged in full until its outcome is reported (B4)", async () => {
    const { clock, spend } = await start();
    const { id } = (await spend.reserve(ask(30), [root], counts)).reservation;
    expect(await spend.budget([root])).toMatchObject([{ reserved: 30, spent: 0 }]);
    clock.advance(60_000);
    expect(await spend.budget([root])).toMatchObject([{ reserved: 0, spent: 30 }]);
    await expect(spend.reserve(ask(71), [root], counts)).rejects.toThrow();
    await spend.settle(id, { commit: 10 }, "c", anybody);
    expect(await spend.budget([root])).toMatchObject([{ reserved: 0, spent: 10 }]);
  });

  it("is reserved once for replays, also concurrent and from another process (B6)", async () => {
    const { spend, other } = await start();
    const request = ask(30);
    const twice = [spend.reserve(request, [root], counts), other.reserve(request, [root], counts)];
    const [one, two] = await Promise.all(twice);
    expect(two?.reservation.id).toBe(one?.reservation.id);
    expect(await spend.budget([root])).toMatchObject([{ reserved: 30 }]);
    const otherBody = { ...request, digest: "another" };
    await expect(spend.reserve(otherBody, [root], counts)).rejects.toThrow("a different body");
    const otherCaller = { ...otherBody, caller: "d" };
    expect((await spend.reserve(otherCaller, [root], counts)).reservation.id).not.toBe(one?.reservation.id);
  });

  it("is not reserved under a chain that is invalid at its transaction", async () => {
    const { spend } = await start();
    const call = spend.reserve(ask(1), [root], () => {
      throw new Error("revoked meanwhile");
    });
    await expect(call).rejects.toThrow("revoked meanwhile");
    expect(await spend.budget([root])).toMatchObject([{ reserved: 0 }]);
  });

  it("is deleted long after the tokens' expiry, charged if unsettled", async () => {
    const { clock, spend, store } = await start();
    const { id } = (await spend.reserve(ask(30), [root], counts)).reservation;
    clock.set(END + WEEK_MS - 1);
    const later = { ...block("later", 10), expiresAt: clock.now() };
    await spend.reserve(ask(1), [later], counts);
    expect((await spend.find(id, anybody)).state).toBe("held");
    clock.advance(1001);
    await spend.reserve(ask(1), [later], counts);
    await expect(spend.find(id, anybody)).rejects.toThrow("the reservation does not exist");
    expect(
      await store.read((tx) => tx.all(FOUND, "SELECT * FROM spend WHERE revocation_id LIKE 'root%'")),
    ).toEqual([]);
  });
});
