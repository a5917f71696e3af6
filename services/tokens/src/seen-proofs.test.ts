import { ManualClock } from "@depute/core";
import {
  type AcceptedProof,
  CLOCK_SKEW_MS,
  checkProof,
  createProof,
  PROOF_WINDOW_MS,
  type ProofExpectation,
} from "@depute/dct";
import type { Store } from "@depute/store";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { HORIZON_LEAD_MS, SeenProofs } from "./seen-proofs.ts";
import { alice, engine, id } from "./testing/holders.ts";
import { openMemory, silent } from "./testing/parts.ts";

const SECOND_MS = 1000;

/** Creates a valid proof whose `iat` is `aheadMs` ahead of the clock. */
function proof(clock: ManualClock, jti: string, aheadMs = 0): AcceptedProof {
  const issuedAt = Math.floor((clock.now() + aheadMs) / SECOND_MS) * SECOND_MS;
  return { jti, principal: id(alice), thumbprint: "", issuedAt, expiresAt: issuedAt + PROOF_WINDOW_MS };
}

/**
 * Starts the proof memory as one process over a store. If the test does not close the memory, proofs that it has not
 * written are lost.
 */
async function start({ store, clock, max = 1000 }: { store: Store; clock: ManualClock; max?: number }) {
  const seenProofs = new SeenProofs({ store, clock, timers: clock, log: silent, max });
  // After a crash, `start` would wait until the clock has passed the horizon, so this function only calls `load`.
  await seenProofs.load();
  return seenProofs;
}

/**
 * Returns a store whose process can be killed. After the kill, its operations have no effect, and their promises never
 * settle.
 */
function mortal(store: Store): Store & { kill(): void } {
  let isDead = false;
  const never = new Promise<never>(() => {});
  return {
    read: (fn) => store.read(fn),
    write: async (fn) => {
      const written = store.write(async (tx) => {
        if (isDead) throw new Error("the process is gone");
        return fn(tx);
      });
      return written.catch((error: unknown) => (isDead ? never : Promise.reject(error)));
    },
    close: () => store.close(),
    kill: () => {
      isDead = true;
    },
  };
}

describe("used proofs (B5)", () => {
  it("are each fresh once, also under concurrency", async () => {
    const property = fc.asyncProperty(fc.array(fc.nat(20), { maxLength: 120 }), async (numbers) => {
      const clock = new ManualClock();
      const seenProofs = await start({ store: await openMemory(), clock });
      const uses = await Promise.all(numbers.map((n) => seenProofs.use(proof(clock, `jti-${n}`), "token")));
      const fresh = numbers.filter((_, i) => uses[i] === "fresh");
      expect(fresh.sort()).toEqual([...new Set(numbers)].sort());
      expect(uses.every((use) => use === "fresh" || use === "seen")).toBe(true);
    });
    await fc.assert(property, { numRuns: 30 });
  });

  it("are never evicted: the limit is exact, also under concurrency", async () => {
    const clock = new ManualClock();
    const seenProofs = await start({ store: await openMemory(), clock, max: 10 });
    const use = (jti: string, kind: "token" | "identity") => seenProofs.use(proof(clock, jti), kind);
    const strangers = await Promise.all(Array.from({ length: 8 }, (_, n) => use(`s${n}`, "identity")));
    expect(strangers.filter((each) => each === "fresh")).toHaveLength(5);
    const holders = await Promise.all(Array.from({ length: 8 }, (_, n) => use(`h${n}`, "token")));
    expect(holders.filter((each) => each === "fresh")).toHaveLength(5);
    expect(await use("h0", "token")).toBe("seen");
    expect(await use("h9", "token")).toBe("full");
    clock.advance(PROOF_WINDOW_MS + CLOCK_SKEW_MS + 1);
    expect(await use("later", "token")).toBe("fresh");
  });

  it("fail with the store, and are fresh on retry", async () => {
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
    const seenProofs = await start({ store, clock });
    const uses = () =>
      Promise.allSettled(["a", "b"].map((jti, n) => seenProofs.use(proof(clock, jti, n * 20_000), "token")));
    expect((await uses()).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    isBroken = false;
    expect(await uses()).toMatchObject([{ value: "fresh" }, { value: "fresh" }]);
  });

  it("cost the store one write a second for any number", async () => {
    const clock = new ManualClock();
    const memory = await openMemory();
    let writes = 0;
    const store: Store = {
      ...memory,
      write: (fn) => {
        writes++;
        return memory.write(fn);
      },
    };
    const seenProofs = await start({ store, clock });
    for (let n = 0; n < 1000; n++) {
      expect(await seenProofs.use(proof(clock, `jti-${n}`), "token")).toBe("fresh");
      clock.advance(10);
      await new Promise(setImmediate);
    }
    expect(writes).toBeLessThanOrEqual(11);
  });

  it("expire before they are deleted, for any clock skew", () => {
    const property = fc.property(
      fc.integer({ min: -CLOCK_SKEW_MS, max: PROOF_WINDOW_MS }),
      fc.nat(999),
      (age, ms) => {
        const now = Date.UTC(2026, 0, 1) + ms;
        const jwt = createProof(engine, alice, { htm: "POST", htu: "a:b", now: now - age });
        const check = (at: number, more: Partial<ProofExpectation> = {}) =>
          checkProof(engine, jwt, { htm: "POST", htu: "a:b", now: at, ...more });
        const used = check(now);
        // The `iat` is rounded down to a second, so a proof at the end of its window may already have expired.
        fc.pre(used.ok);
        const forgetTime = used.ok ? used.proof.expiresAt + CLOCK_SKEW_MS : 0;
        expect(check(forgetTime + 1).ok).toBe(false);
        // The proof would have expired even if the clock were set back by the tolerated skew.
        expect(check(forgetTime + 1 - CLOCK_SKEW_MS).ok).toBe(false);
      },
    );
    fc.assert(property, { numRuns: 200 });
  });
});

describe("proofs across the stop of a process (B5)", () => {
  it("are refused until the store is read, and a stop before that writes nothing", async () => {
    const clock = new ManualClock();
    const store = await openMemory();
    const before = await start({ store, clock });
    const used = proof(clock, "used");
    expect(await before.use(used, "token")).toBe("fresh");
    await before.close();
    const unread = new SeenProofs({ store, clock, timers: clock, log: silent, max: 1000 });
    expect(await unread.use(used, "token")).toBe("unsure");
    expect(await unread.use(proof(clock, "new"), "token")).toBe("unsure");
    await unread.close();
    const after = await start({ store, clock });
    expect(await after.use(used, "token")).toBe("seen");
    expect(await after.use(proof(clock, "new"), "token")).toBe("fresh");
  });

  it("are remembered after a clean stop, and no other proof is refused", async () => {
    const clock = new ManualClock();
    const store = await openMemory();
    const before = await start({ store, clock });
    const used = proof(clock, "used");
    expect(await before.use(used, "token")).toBe("fresh");
    await before.close();
    await expect(before.use(proof(clock, "late"), "token")).rejects.toThrow("stopping");
    const after = await start({ store, clock });
    expect(await after.use(used, "token")).toBe("seen");
    expect(await after.use(proof(clock, "late"), "token")).toBe("fresh");
  });

  it("that wait at the stop are not accepted", async () => {
    const clock = new ManualClock();
    const store = await openMemory();
    const before = await start({ store, clock });
    const waiting = [0, 0, 20_000].map((aheadMs, n) =>
      before.use(proof(clock, `jti-${n}`, aheadMs), "token"),
    );
    const outcomes = Promise.allSettled(waiting);
    await before.close();
    expect((await outcomes).map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    const after = await start({ store, clock });
    expect(await after.use(proof(clock, "jti-0"), "token")).toBe("fresh");
  });

  it("from before a crash are refused, later ones are accepted", async () => {
    const clock = new ManualClock();
    const memory = await openMemory();
    const store = mortal(memory);
    const before = await start({ store, clock });
    const [used, unused] = [proof(clock, "used"), proof(clock, "unused")];
    const ahead = proof(clock, "ahead", 25_000);
    expect(await before.use(used, "token")).toBe("fresh");
    expect(await before.use(ahead, "token")).toBe("fresh");
    store.kill();

    const seenProofs = new SeenProofs({ store: memory, clock, timers: clock, log: silent, max: 1000 });
    let isStarted = false;
    const starting = seenProofs.start().then(() => {
      isStarted = true;
    });
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    clock.advance(HORIZON_LEAD_MS + SECOND_MS - 1);
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    expect(isStarted).toBe(false);
    clock.advance(1);
    await starting;
    expect(await seenProofs.use(used, "token")).toBe("unsure");
    expect(await seenProofs.use(unused, "token")).toBe("unsure");
    expect(await seenProofs.use(ahead, "token")).toBe("seen");
    expect(await seenProofs.use(proof(clock, "new"), "token")).toBe("fresh");
    // After a clean stop, a proof that was uncertain at the start is still uncertain.
    await seenProofs.close();
    const third = await start({ store: memory, clock });
    expect(await third.use(unused, "token")).toBe("unsure");
  });

  it("are never fresh twice, for a kill at any point", async () => {
    const step = fc.oneof(
      {
        weight: 6,
        arbitrary: fc.record({ use: fc.nat(12), aheadMs: fc.integer({ min: -60_000, max: 30_000 }) }),
      },
      { weight: 3, arbitrary: fc.record({ advance: fc.constantFrom(1, 300, 999, 1000, 2500, 31_000) }) },
      { weight: 1, arbitrary: fc.record({ end: fc.constantFrom("kill", "stop", "kill at once") }) },
    );
    const property = fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const clock = new ManualClock();
      const memory = await openMemory();
      let store = mortal(memory);
      let seenProofs = await start({ store, clock });
      const acceptedProofs = new Map<number, AcceptedProof>();
      const fresh = new Set<number>();
      for (const one of steps) {
        if ("advance" in one) clock.advance(one.advance);
        else if ("use" in one) {
          const presented = acceptedProofs.get(one.use) ?? proof(clock, `jti-${one.use}`, one.aheadMs);
          acceptedProofs.set(one.use, presented);
          const age = clock.now() - presented.issuedAt;
          if (age > PROOF_WINDOW_MS || age < -CLOCK_SKEW_MS) continue;
          const use = await seenProofs.use(presented, "token");
          expect(use === "fresh" && fresh.has(one.use)).toBe(false);
          if (use === "fresh") fresh.add(one.use);
        } else {
          if (one.end === "stop") await seenProofs.close();
          // A write that is running at the kill may complete or fail.
          if (one.end === "kill") for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
          store.kill();
          store = mortal(memory);
          seenProofs = await start({ store, clock });
        }
      }
    });
    await fc.assert(property, { numRuns: 150 });
  });
});
