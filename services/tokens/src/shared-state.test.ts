import type { Bus } from "@depute/bus";
import { DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { DeputeError, ErrorReason, ManualClock } from "@depute/core";
import {
  CLOCK_SKEW_MS,
  createRevocation,
  type Keypair,
  MAX_LIFETIME_MS,
  type SerializedDCT,
} from "@depute/dct";
import type { Store } from "@depute/store";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { RecordedUse } from "./seen-proofs.ts";
import { SharedProofs } from "./shared-proofs.ts";
import { expirePending } from "./store/pending-rows.ts";
import { writeHorizon } from "./store/proof-rows.ts";
import { alice, engine, id, mallory, otherRoot } from "./testing/holders.ts";
import { createReplica, openMemory, POLL_MS, presented, rootToken, silent } from "./testing/parts.ts";

/**
 * A bus without wake-ups, for two replicas over one store. The replicas do not poll either, so each decision must
 * itself read the new revocations.
 */

const deaf: Bus = { publish: () => {}, subscribe: () => () => {}, close: async () => {} };

let clock: ManualClock;
let memory: Store;
let isBroken: boolean;
let one: ReturnType<typeof createReplica>;
let other: ReturnType<typeof createReplica>;

beforeEach(async () => {
  clock = new ManualClock();
  memory = await openMemory();
  isBroken = false;
  const metadata = { service: "store" };
  const failing = () =>
    Promise.reject(new DeputeError(ErrorReason.DEPENDENCY_UNAVAILABLE, "no database", { metadata }));
  const store: Store = {
    ...memory,
    read: (fn) => (isBroken ? failing() : memory.read(fn)),
    write: (fn, options) => (isBroken ? failing() : memory.write(fn, options)),
  };
  const shared = { store, bus: deaf, clock, isShared: true };
  [one, other] = [createReplica(shared), createReplica(shared)];
  for (const replica of [one, other]) {
    await replica.reader.look();
    await replica.seenProofs.start();
  }
});
afterEach(() => memory.close());

type Replica = typeof one;

async function outcome({ tokenVerifier }: Replica, request: ReturnType<typeof presented>) {
  const { result } = await tokenVerifier.verify(request, "");
  return result.case === "denial" ? result.value.type : "allowed";
}

async function firstBlock(token: SerializedDCT): Promise<string> {
  const chain = await one.chains.proven(token);
  return chain.ok ? (chain.blocks[0]?.revocationId ?? "") : "";
}

/**
 * Revokes a token at one replica. `isProven` says whether the request contains the chain that proves the revoker
 * rightful.
 */
async function revoke(token: SerializedDCT, by: Keypair, isProven: boolean): Promise<string> {
  const chain = await one.chains.proven(token);
  const block = await firstBlock(token);
  const blocks = isProven && chain.ok ? chain.blocks : [];
  await one.revocations.record(createRevocation(engine, block, "block", by, clock.now()), "", blocks);
  return block;
}

describe("after a revocation at one replica", () => {
  test.each([
    { entry: "logged", by: otherRoot, isProven: true },
    { entry: "waiting", by: alice, isProven: false },
  ])("the other one allows no token with a $entry entry", async ({ by, isProven }) => {
    const token = rootToken(clock);
    expect(await outcome(other, presented(clock, token, alice))).toBe("allowed");
    await revoke(token, by, isProven);
    expect(await outcome(other, presented(clock, token, alice))).toBe(DenialType.REVOKED);
  });

  test("the other one reserves nothing", async () => {
    const token = rootToken(clock);
    const checked = await other.chains.check(token);
    if (!checked.ok) throw new Error(checked.denial.type);
    await revoke(token, otherRoot, true);
    const request = {
      ...{ caller: "", organization: "", requestId: "one", digest: "" },
      ...{ amount: 1, lifetimeMs: 1000 },
    };
    const assertCounts = () => {
      if (other.chains.finalDenial(checked.token, checked.blocks) !== undefined) throw new Error("refused");
    };
    await expect(other.spend.reserve(request, checked.blocks, assertCounts)).rejects.toThrow("refused");
  });

  test("the other one detects it by a check of the chain", async () => {
    const token = rootToken(clock);
    await revoke(token, otherRoot, true);
    expect(await other.chains.check(token)).toMatchObject({ ok: false, denial: { type: "revoked" } });
  });
});

describe("waiting entries in the memory of a replica", () => {
  test("are dropped after another replica has logged them, and stay in force", async () => {
    const token = rootToken(clock);
    const block = await revoke(token, alice, false);
    await other.reader.look();
    await other.reader.dropSettled();
    expect(other.state.isPending(block, [id(alice)])).toBe(true);
    expect(await outcome(one, presented(clock, token, alice))).toBe(DenialType.REVOKED);
    await other.reader.dropSettled();
    expect(other.state.isPending(block, [id(alice)])).toBe(false);
    expect(other.state.isRevoked(block, [id(alice)])).toBe(true);
  });

  test("are dropped after another replica has deleted them", async () => {
    const token = rootToken(clock);
    const block = await firstBlock(token);
    const entry = createRevocation(engine, block, "block", mallory, clock.now());
    // No setting, credential or agent's card contains the key, so the entry waits in the pool and expires.
    await one.revocations.record(entry, "", []);
    await other.reader.look();
    expect(other.state.isPending(block, [id(mallory)])).toBe(true);
    clock.advance(MAX_LIFETIME_MS + CLOCK_SKEW_MS + 1);
    await memory.write((tx) => expirePending(tx, clock.now(), 100));
    await other.reader.dropSettled();
    expect(other.state.isPending(block, [id(mallory)])).toBe(false);
  });

  test("stay if they were added again in the meantime", async () => {
    const key = { revocationId: "block", revokedBy: "key" };
    other.state.addPending(key);
    const [before] = other.state.pending();
    other.state.addPending(key);
    other.state.dropPending(key, before?.added);
    expect(other.state.isPending("block", ["key"])).toBe(true);
    other.state.dropPending(key, other.state.pending()[0]?.added);
    expect(other.state.isPending("block", ["key"])).toBe(false);
  });
});

describe("a replica that was stopped during a call", () => {
  test("reads the revocations again before it answers", async () => {
    clock.advance(POLL_MS);
    expect(other.reader.refresh()).toBeUndefined();
    clock.advance(1);
    const token = rootToken(clock);
    const block = await revoke(token, otherRoot, true);
    expect(other.state.isRevoked(block, [])).toBe(false);
    expect(await other.reader.refresh()).toBe(true);
    expect(other.state.isRevoked(block, [])).toBe(true);
  });

  test("refuses to answer if it cannot read them", async () => {
    clock.advance(POLL_MS + 1);
    isBroken = true;
    expect(await other.reader.refresh()).toBe(false);
  });
});

describe("used proofs", () => {
  test("a proof counts once, at whichever replicas it arrives", async () => {
    const token = rootToken(clock);
    const request = presented(clock, token, alice);
    const outcomes = await Promise.all([one, other, one, other].map((each) => outcome(each, request)));
    expect(outcomes.filter((each) => each === "allowed")).toHaveLength(1);
  });

  test("a proof whose record may be durable is refused", async () => {
    const proof = { principal: id(alice), jti: "j", kind: "token", forgetTime: clock.now() + 1000 } as const;
    isBroken = true;
    await expect(one.seenProofs.useRecorded(proof)).rejects.toMatchObject({
      reason: ErrorReason.DEPENDENCY_UNAVAILABLE,
    });
    isBroken = false;
    expect(await one.seenProofs.useRecorded(proof)).toBe("seen");
    expect(await other.seenProofs.useRecorded(proof)).toBe("fresh");
  });

  test("proofs up to the horizon of a process without replicas are refused", async () => {
    await memory.write((tx) => writeHorizon(tx, clock.now() + 500));
    const options = { store: memory, clock, timers: clock, log: silent, max: 10, revocations: one.reader };
    const proofs = new SharedProofs(options);
    const started = proofs.start();
    for (let turn = 0; turn < 100 && clock.pending === 0; turn++) await new Promise(setImmediate);
    clock.advance(5_000);
    await started;
    const proof = { principal: id(alice), thumbprint: "", expiresAt: clock.now() + 60_000 };
    expect(await proofs.use({ ...proof, jti: "a", issuedAt: clock.now() - 5_000 }, "token")).toBe("unsure");
    expect(await proofs.use({ ...proof, jti: "a", issuedAt: clock.now() }, "token")).toBe("fresh");
  });

  test("a full memory accepts no further proof, and an expired proof frees its space", async () => {
    const options = { store: memory, clock, timers: clock, log: silent, max: 2, revocations: one.reader };
    const proofs = new SharedProofs(options);
    const use = (jti: string) =>
      proofs.useRecorded({ principal: id(alice), jti, kind: "token", forgetTime: clock.now() + 1000 });
    expect([await use("a"), await use("b"), await use("c")]).toEqual(["fresh", "fresh", "full"]);
    clock.advance(1001);
    expect(await use("c")).toBe("fresh");
  });

  test("property: of all uses of a proof, one is fresh", async () => {
    const uses = fc.array(
      fc.record({
        at: fc.integer({ min: 0, max: 1 }),
        jti: fc.integer({ min: 0, max: 9 }),
        pause: fc.boolean(),
      }),
      { maxLength: 60 },
    );
    let run = 0;
    await fc.assert(
      fc.asyncProperty(uses, async (list) => {
        run++;
        const results = new Map<number, RecordedUse[]>();
        const pending: Promise<void>[] = [];
        for (const { at, jti, pause } of list) {
          const proof = {
            principal: id(alice),
            jti: `${run}.${jti}`,
            kind: "token",
            forgetTime: 1e15,
          } as const;
          const { seenProofs } = at === 0 ? one : other;
          const use = seenProofs.useRecorded(proof).then((result) => {
            results.set(jti, [...(results.get(jti) ?? []), result]);
          });
          pending.push(use);
          if (pause) await use;
        }
        await Promise.all(pending);
        for (const each of results.values()) {
          expect(each.filter((result) => result === "fresh")).toHaveLength(1);
          expect(each.filter((result) => result === "seen")).toHaveLength(each.length - 1);
        }
      }),
      { numRuns: 50 },
    );
  });
});
