import { create } from "@bufbuild/protobuf";
import { DenialReasonSchema, DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { ManualClock } from "@depute/core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Payer, Reserved, Spender } from "./authoriser.ts";
import { SHARED_MS } from "./rules/shared-reservation.ts";
import { SharedReservations } from "./shared-reservations.ts";

const COST = 100;
const payer = (token: string, root = "root"): Payer => ({ token, blocks: [root, token] });

/** A tokens service with one budget for all tokens. It refuses what would exceed the budget. */
class FakeSpender implements Spender {
  readonly calls: string[] = [];
  readonly held = new Map<string, number>();
  charged = 0;
  budget: number;
  denial: DenialType = DenialType.BUDGET_EXCEEDED;
  isDown = false;
  #made = 0;

  constructor(budget = 1_000_000) {
    this.budget = budget;
  }

  get remaining(): number {
    return this.budget - this.charged - [...this.held.values()].reduce((sum, amount) => sum + amount, 0);
  }

  async reserve({ token }: Payer, microcents: number): Promise<Reserved> {
    await this.#answer(`reserve ${microcents} of ${token}`);
    if (microcents > this.remaining)
      return { ok: false, denial: create(DenialReasonSchema, { type: this.denial }) };
    const reservationId = `r${++this.#made}`;
    this.held.set(reservationId, microcents);
    return { ok: true, reservationId, remainingMicrocents: this.remaining };
  }

  async commit(id: string, microcents: number | undefined) {
    const charged = microcents ?? this.held.get(id) ?? 0;
    await this.#settle(id, charged, `commit ${charged} of ${id}`);
    return charged;
  }

  async release(id: string) {
    await this.#settle(id, 0, `release ${id}`);
  }

  async #settle(id: string, charged: number, call: string) {
    await this.#answer(call);
    const amount = this.held.get(id);
    if (amount === undefined || charged > amount) throw new Error(`${call}: not possible`);
    this.held.delete(id);
    this.charged += charged;
  }

  async #answer(call: string) {
    this.calls.push(call);
    if (this.isDown) throw new Error("no answer");
  }
}

function start({ budget = 1_000_000, maxCalls = 16 } = {}) {
  const spender = new FakeSpender(budget);
  const clock = new ManualClock();
  const faults: string[] = [];
  const shared = new SharedReservations({
    ...{ spender, maxCalls, clock, timers: clock },
    onFault: (id) => faults.push(id),
  });
  const reserve = async (token = "a", cost = COST, root = "root") => {
    const reserved = await shared.reserve(payer(token, root), cost, crypto.randomUUID());
    return reserved.ok ? reserved.reservationId : undefined;
  };
  /** Makes a call that is charged in full. */
  const call = async (token = "a") => {
    const id = await reserve(token);
    if (id !== undefined) await shared.commit(id, undefined);
    return id !== undefined;
  };
  const callTimes = async (times: number) => {
    for (let i = 0; i < times; i++) await call();
  };
  return { spender, clock, faults, shared, reserve, call, callTimes };
}

describe("calls under one token", () => {
  test("that follow each other share reservations of more and more calls", async () => {
    const { spender, callTimes, shared } = start();
    await callTimes(31);
    await shared.close();
    const reserved = spender.calls.filter((call) => call.startsWith("reserve"));
    expect(reserved.slice(0, 5)).toEqual([100, 200, 400, 800, 1600].map((sum) => `reserve ${sum} of a`));
    expect(spender.charged).toBe(3100);
    expect(spender.held.size).toBe(0);
  });

  test("never share a reservation of more calls than the maximum", async () => {
    const { spender, callTimes } = start({ maxCalls: 4 });
    await callTimes(40);
    const amounts = spender.calls.flatMap((call) => /^reserve (\d+)/.exec(call)?.[1] ?? []).map(Number);
    expect(Math.max(...amounts)).toBe(400);
  });

  test("have a reservation of their own with a maximum of one", async () => {
    const { spender, callTimes } = start({ maxCalls: 1 });
    await callTimes(2);
    const own = (n: number) => ["reserve 100 of a", `commit 100 of r${n}`];
    expect(spender.calls).toEqual([...own(1), ...own(2)]);
  });

  test("that follow a pause have a reservation of their own", async () => {
    const { spender, clock, callTimes, call } = start();
    await callTimes(8);
    clock.advance(2 * SHARED_MS + 1);
    spender.calls.length = 0;
    await call();
    expect(spender.calls).toContain("reserve 100 of a");
  });

  test("at the same time do not wait for each other", async () => {
    const { spender, reserve } = start();
    await Promise.all([reserve(), reserve(), reserve()]);
    expect(spender.calls).toEqual(["reserve 100 of a", "reserve 100 of a", "reserve 100 of a"]);
  });
});

describe("a shared reservation", () => {
  test("is settled with the sum of the charges, after its time", async () => {
    const { spender, clock, shared, reserve, callTimes } = start();
    await callTimes(7);
    await shared.release((await reserve()) ?? "");
    await shared.commit((await reserve()) ?? "", 30);
    clock.advance(SHARED_MS);
    await shared.close();
    expect(spender.charged).toBe(730);
    expect(spender.held.size).toBe(0);
  });

  test("is released if no call was charged", async () => {
    const { spender, clock, shared, reserve, callTimes } = start();
    await callTimes(3);
    const id = await reserve();
    clock.advance(SHARED_MS);
    await shared.release(id ?? "");
    expect(spender.calls.at(-1)).toMatch(/^release/);
  });

  test("stays until its last call has ended, and takes no further call after its time", async () => {
    const { spender, clock, shared, reserve, callTimes } = start();
    await callTimes(3);
    const id = (await reserve()) ?? "";
    const [own = ""] = id.split("/");
    clock.advance(SHARED_MS);
    expect(spender.held.has(own)).toBe(true);
    expect((await reserve())?.split("/")[0]).not.toBe(own);
    await shared.commit(id, undefined);
    expect(spender.held.has(own)).toBe(false);
  });

  test("that cannot be settled is reported to the call that waits, or as a fault", async () => {
    const { spender, clock, faults, shared, reserve, callTimes } = start();
    const id = (await reserve()) ?? "";
    spender.isDown = true;
    await expect(shared.commit(id, undefined)).rejects.toThrow("no answer");
    spender.isDown = false;
    await callTimes(4);
    spender.isDown = true;
    clock.advance(SHARED_MS);
    await shared.close();
    expect(faults.length).toBeGreaterThan(0);
  });
});

describe("near the end of the budget", () => {
  test("every call that the budget allows is made", async () => {
    const { spender, call } = start({ budget: 100 * COST });
    let made = 0;
    while (await call()) made++;
    expect(made).toBe(100);
    expect(spender.charged).toBe(100 * COST);
  });

  test("an unused reservation of another token with the same authority block denies no call", async () => {
    const { spender, reserve, callTimes } = start({ budget: 1000 * COST });
    await callTimes(20);
    const rest = spender.remaining;
    expect(spender.held.size).toBeGreaterThan(0);
    expect(await reserve("b", rest + COST)).toBeDefined();
  });

  test("an unused reservation of a token with another authority block stays", async () => {
    const { spender, reserve, callTimes } = start({ budget: 1000 * COST });
    await callTimes(20);
    const held = spender.held.size;
    expect(await reserve("b", spender.remaining + COST, "other")).toBeUndefined();
    expect(spender.held.size).toBe(held);
  });

  test("a denial for another reason settles nothing", async () => {
    const { spender, reserve, callTimes } = start({ budget: 1000 * COST });
    await callTimes(20);
    const held = spender.held.size;
    spender.denial = DenialType.REVOKED;
    expect(await reserve("b", spender.remaining + COST)).toBeUndefined();
    expect(spender.held.size).toBe(held);
  });
});

test("nothing remains after the last call and a pause", async () => {
  const { spender, clock, callTimes } = start();
  await callTimes(50);
  clock.advance(2 * SHARED_MS);
  await new Promise((resolve) => setImmediate(resolve));
  expect([spender.held.size, clock.pending]).toEqual([0, 0]);
});

test("any calls are charged exactly, and never exceed the budget", async () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant("reserve" as const), token: fc.constantFrom("a", "b"), cost: fc.nat(200) }),
    fc.record({ kind: fc.constantFrom("commit" as const, "release" as const), part: fc.nat(100) }),
    fc.record({ kind: fc.constant("wait" as const), ms: fc.constantFrom(1, SHARED_MS, 3 * SHARED_MS) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), fc.nat(20_000), async (steps, budget) => {
      const { spender, clock, shared, reserve, faults } = start({ budget });
      const open: { id: string; cost: number }[] = [];
      let expected = 0;
      for (const one of steps) {
        if (one.kind === "wait") clock.advance(one.ms);
        else if (one.kind === "reserve") {
          const cost = one.cost + 1;
          const id = await reserve(one.token, cost);
          if (id !== undefined) open.push({ id, cost });
        } else {
          const [part] = open.splice(one.part % Math.max(1, open.length), 1);
          if (part === undefined) continue;
          const charged = one.kind === "commit" ? Math.ceil(part.cost / 2) : 0;
          if (charged > 0) await shared.commit(part.id, charged);
          else await shared.release(part.id);
          expected += charged;
        }
        expect(spender.remaining).toBeGreaterThanOrEqual(0);
      }
      for (const { id } of open) await shared.release(id);
      await shared.close();
      expect([spender.charged, spender.held.size, faults]).toEqual([expected, 0, []]);
      expect(clock.pending).toBe(0);
    }),
  );
});
