import { ManualClock } from "@depute/core";
import type { Store } from "@depute/store";
import fc from "fast-check";
import { expect, it } from "vitest";
import { BlockNotes } from "./block-notes.ts";
import { SpendLedger } from "./spend-ledger.ts";
import { readSpend } from "./store/spend-rows.ts";
import { createReplica, openBus, openMemory } from "./testing/parts.ts";

const [A, B] = ["A".repeat(43), `${"A".repeat(42)}E`] as const;

/** Returns a store that counts the reads from it. */
async function counting() {
  const memory = await openMemory();
  const counter = { reads: 0 };
  const store: Store = {
    ...memory,
    read: (fn) => {
      counter.reads++;
      return memory.read(fn);
    },
  };
  return { store, of: counter };
}

it("the store is read once for blocks with records, never for others; also after a restart", async () => {
  const { store, of } = await counting();
  const notes = new BlockNotes(store);
  await notes.start();
  expect(await notes.read([A, B])).toBeUndefined();
  expect(of.reads).toBe(1);
  const binding = { audiences: [], tenants: ["acme"], singleUse: false };
  await store.write((tx) => notes.bind(tx, B, binding));
  // A binding is permanent: this second binding of the block changes nothing.
  await store.write((tx) => notes.bind(tx, B, { ...binding, tenants: ["other"] }));
  await store.write((tx) => notes.bind(tx, A, { ...binding, tenants: [] }));
  expect(await notes.read([A])).toBeUndefined();
  for (let n = 0; n < 3; n++) {
    expect(await notes.read([A, B])).toEqual({ counted: [0, 0], bindings: [binding], singleUse: [] });
  }
  expect(of.reads).toBe(2);
  const again = new BlockNotes(store);
  await again.start();
  expect(await again.read([A, B])).toEqual({ counted: [0, 0], bindings: [binding], singleUse: [] });
  expect(of.reads).toBe(4);
});

it("rolled back changes do not count", async () => {
  const { store } = await counting();
  const notes = new BlockNotes(store);
  const failing = store.write(async (tx) => {
    notes.count(tx, A, 7);
    throw new Error("undone");
  });
  await expect(failing).rejects.toThrow("undone");
  expect(await notes.read([A])).toEqual({ counted: [0], bindings: [], singleUse: [] });
});

it("the cache equals the store under concurrent reservations, settlements and reads, with a small limit", async () => {
  const names = [0, 1, 2, 3].map((n) => String(n).padEnd(43, "A"));
  const step = fc.oneof(
    fc.record({ reserve: fc.nat(3), amount: fc.integer({ min: 1, max: 9 }) }),
    fc.record({ settle: fc.nat(20), cost: fc.nat(9) }),
    fc.record({ ask: fc.subarray(names, { minLength: 1 }) }),
    fc.record({ pause: fc.nat(3) }),
  );
  const property = fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
    const [clock, store] = [new ManualClock(), await openMemory()];
    const { audit } = createReplica({ store, bus: openBus(), clock });
    const notes = new BlockNotes(store, 2);
    const spend = new SpendLedger({ store, clock, audit, notes });
    const acknowledged = new Map<string, number>();
    const madeReservations: { id: string; amount: number }[] = [];
    const running: Promise<unknown>[] = [];
    for (const [n, each] of steps.entries()) {
      if ("reserve" in each) {
        const chain = names.slice(0, each.reserve + 1);
        const blocks = chain.map((revocationId) => {
          return { revocationId, maxBudgetMicrocents: 1000, expiresAt: clock.now() + 60_000 };
        });
        const { amount } = each;
        const askedReservation = {
          ...{ caller: "c", organization: "", requestId: `r${n}`, digest: "d" },
          amount,
          lifetimeMs: 60_000,
        };
        const reserving = spend
          .reserve(askedReservation, blocks, () => {})
          .then(async ({ reservation: { id } }) => {
            madeReservations.push({ id, amount });
            for (const name of chain) acknowledged.set(name, (acknowledged.get(name) ?? 0) + amount);
          });
        running.push(reserving);
      } else if ("settle" in each) {
        const one = madeReservations[each.settle];
        // Charges the whole reservation, so that the acknowledged amount stays a lower bound of the spend.
        if (one !== undefined) {
          const settling = spend.settle(one.id, { commit: one.amount }, "c", () => true);
          running.push(settling.catch(() => {}));
        }
      } else if ("ask" in each) {
        const least = each.ask.map((name) => acknowledged.get(name) ?? 0);
        const asking = notes.read(each.ask).then((readNotes) => {
          for (const [i, amount] of least.entries())
            expect(readNotes?.counted[i] ?? 0).toBeGreaterThanOrEqual(amount);
        });
        running.push(asking);
      } else for (let turn = 0; turn < each.pause; turn++) await new Promise(setImmediate);
    }
    await Promise.all(running);
    const stored = await store.read((tx) => readSpend(tx, names));
    const counted = stored.map(({ spent, held }) => spent + held);
    for (let n = 0; n < 2; n++)
      expect((await notes.read(names))?.counted ?? names.map(() => 0)).toEqual(counted);
    for (const [i, name] of names.entries())
      expect((await notes.read([name]))?.counted ?? [0]).toEqual([counted[i]]);
  });
  await fc.assert(property, { numRuns: 100 });
});
