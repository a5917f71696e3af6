import { ManualClock } from "@depute/core";
import type { AcceptedProof } from "@depute/dct";
import type { Store } from "@depute/store";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SeenProofs } from "./seen-proofs.ts";
import { openMemory } from "./testing/parts.ts";

const MINUTE_MS = 60_000;
const proof = (clock: ManualClock, jti: string, principal = "p"): AcceptedProof => {
  return { jti, principal, thumbprint: "", expiresAt: clock.now() + MINUTE_MS };
};

describe("proofs that were used (B5)", () => {
  it("are each fresh once, however many come together and in which processes", async () => {
    const property = fc.asyncProperty(fc.array(fc.nat(20), { maxLength: 120 }), async (numbers) => {
      const clock = new ManualClock();
      const store = await openMemory();
      const all = [1, 2].map(() => new SeenProofs({ store, clock, max: 1000 }));
      const uses = await Promise.all(
        numbers.map((n, i) => all[i % 2]?.use(proof(clock, `jti-${n}`), "token")),
      );
      const fresh = numbers.filter((_, i) => uses[i] === "fresh");
      expect(fresh.sort()).toEqual([...new Set(numbers)].sort());
      expect(uses.every((use) => use === "fresh" || use === "seen")).toBe(true);
      await store.close();
    });
    await fc.assert(property, { numRuns: 30 });
  });

  it("are not forgotten for others: the room is counted to the last, also within one batch", async () => {
    const clock = new ManualClock();
    const seen = new SeenProofs({ store: await openMemory(), clock, max: 10 });
    const use = (jti: string, kind: "token" | "identity") => seen.use(proof(clock, jti), kind);
    const strangers = await Promise.all(Array.from({ length: 8 }, (_, n) => use(`s${n}`, "identity")));
    expect(strangers.filter((each) => each === "fresh")).toHaveLength(5);
    const holders = await Promise.all(Array.from({ length: 8 }, (_, n) => use(`h${n}`, "token")));
    expect(holders.filter((each) => each === "fresh")).toHaveLength(5);
    expect(await use("h0", "token")).toBe("full");
    clock.advance(MINUTE_MS + 30_001);
    expect(await use("later", "token")).toBe("fresh");
  });

  it("fail together where the store does, and are fresh when they come again", async () => {
    const clock = new ManualClock();
    const memory = await openMemory();
    let isBroken = true;
    const store: Store = {
      read: (fn) => memory.read(fn),
      write: async (fn) => {
        if (isBroken) throw new Error("the disk is full");
        return memory.write(fn);
      },
      close: () => memory.close(),
    };
    const seen = new SeenProofs({ store, clock, max: 10 });
    const uses = () => Promise.allSettled(["a", "b"].map((jti) => seen.use(proof(clock, jti), "token")));
    expect((await uses()).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    isBroken = false;
    expect(await uses()).toMatchObject([{ value: "fresh" }, { value: "fresh" }]);
  });
});
