import { setImmediate } from "node:timers/promises";
import type { Bus } from "@depute/bus";
import { DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { encodeBase64Url, ManualClock } from "@depute/core";
import { createRevocation, type Keypair, type SerializedDCT } from "@depute/dct";
import { row, type Store, text } from "@depute/store";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RevocationState } from "./revocation-state.ts";
import type { SeenProofs } from "./seen-proofs.ts";
import { sealSome } from "./store/revocation-rows.ts";
import { forgeLink } from "./testing/forge.ts";
import { alice, bob, carol, engine, id, mallory, otherRoot } from "./testing/holders.ts";
import {
  createReplica,
  MAX_STALENESS_MS,
  openBus,
  openMemory,
  POLL_MS,
  presented,
  rootToken,
} from "./testing/parts.ts";

type Replica = ReturnType<typeof createReplica>;

const outcome = async (
  { tokenVerifier }: Replica,
  clock: ManualClock,
  token: SerializedDCT,
  holder: Keypair,
) => {
  const { result } = await tokenVerifier.verify(presented(clock, token, holder), "");
  return result.case === "denial" ? result.value.type : "allowed";
};

const blockIds = async ({ chains }: Replica, token: SerializedDCT) => {
  const chain = await chains.proven(token);
  return chain.ok ? chain.blocks.map(({ revocationId }) => revocationId) : [];
};

const deaf: Bus = { publish: () => {}, subscribe: () => () => {}, close: async () => {} };

/** Lets up to 200 turns of the event loop pass, until `until` returns true. */
async function settle(until: () => boolean | Promise<boolean> = () => false): Promise<void> {
  for (let turn = 0; turn < 200 && !(await until()); turn++) await setImmediate();
}

describe("two replicas over one store", () => {
  const start = async (store?: Store) => {
    const clock = new ManualClock();
    const shared = { store: store ?? (await openMemory()), bus: openBus(), clock };
    const [one, other] = [createReplica(shared), createReplica(shared)];
    await Promise.all([one.reader.start(), other.reader.start()]);
    const stop = async () => {
      await Promise.all([one.reader.close(), other.reader.close()]);
      await shared.bus.close();
      await shared.store.close();
    };
    return { ...shared, one, other, stop };
  };

  it("see each other's revocations after a wake-up", async () => {
    const { one, other, clock, stop } = await start();
    const token = rootToken(clock);
    const [block = ""] = await blockIds(one, token);
    await one.revocations.record(createRevocation(engine, block, "block", alice, clock.now()), "", []);
    await settle(() => other.state.isPending(block, [id(alice)]));
    // The other replica also stores the pending entry. When it logs the entry, the first replica reads it from the log.
    expect(await outcome(other, clock, token, alice)).toBe(DenialType.REVOKED);
    await settle(() => one.state.sequence === 1);
    expect([one.state.sequence, other.state.sequence]).toEqual([1, 1]);
    await stop();
  });

  it("see them by polling when a wake-up is lost (R4)", async () => {
    const store = await openMemory();
    const clock = new ManualClock();
    const [busOfOne, busOfOther] = [openBus(), openBus()];
    const one = createReplica({ store, bus: busOfOne, clock });
    const other = createReplica({ store, bus: busOfOther, clock });
    await Promise.all([one.reader.start(), other.reader.start()]);
    await settle(() => clock.pending >= 2);
    const token = rootToken(clock);
    const chain = await one.chains.proven(token);
    const entry = createRevocation(
      engine,
      (await blockIds(one, token))[0] ?? "",
      "block",
      otherRoot,
      clock.now(),
    );
    await one.revocations.record(entry, "", chain.ok ? chain.blocks : []);
    await settle();
    expect(other.state.sequence).toBe(0);
    clock.advance(POLL_MS);
    await settle(() => other.state.sequence === 1);
    expect(await outcome(other, clock, token, alice)).toBe(DenialType.REVOKED);
    await Promise.all([one.reader.close(), other.reader.close()]);
    await store.close();
  });
});

describe("a log that cannot be read (R4, R5)", () => {
  it("makes the state too old for decisions, and is retried", async () => {
    const memory = await openMemory();
    let isBroken = false;
    const logStore: Store = {
      read: async (fn) => {
        if (isBroken) throw new Error("the disk is gone");
        return memory.read(fn);
      },
      write: (fn) => memory.write(fn),
      close: () => memory.close(),
    };
    const clock = new ManualClock();
    const replica = createReplica({ store: memory, logStore, bus: openBus(), clock });
    await replica.reader.start();
    await settle(() => clock.pending > 0);
    isBroken = true;
    const token = rootToken(clock);
    for (let ms = 0; ms < MAX_STALENESS_MS; ms += POLL_MS) {
      expect(await outcome(replica, clock, token, alice)).toBe("allowed");
      clock.advance(POLL_MS);
      await settle(() => clock.pending > 0);
    }
    expect(await outcome(replica, clock, token, alice)).toBe("allowed");
    clock.advance(1);
    expect(await outcome(replica, clock, token, alice)).toBe(DenialType.REVOCATION_STATE_STALE);
    isBroken = false;
    clock.advance(POLL_MS);
    await settle(() => !replica.state.isStale(clock.now()));
    expect(await outcome(replica, clock, token, alice)).toBe("allowed");
    await replica.reader.close();
  });

  it("prevents the start of the service", async () => {
    const store = await openMemory();
    await store.close();
    const replica = createReplica({ store, bus: openBus(), clock: new ManualClock() });
    await expect(replica.reader.start()).rejects.toThrow();
  });

  it("includes a log with a gap", async () => {
    const store = await openMemory();
    const clock = new ManualClock();
    const replica = createReplica({ store, bus: openBus(), clock });
    await replica.reader.start();
    const insert =
      "INSERT INTO revocations VALUES (2, ?, 'someone', 'block', '2026-01-01T00:00:00Z', 'signature', 0, '', '', 0)";
    await store.write((tx) => tx.run(insert, ["A".repeat(43)]));
    await expect(replica.reader.look()).rejects.toThrow("gap between the entries 0 and 2");
    expect(replica.state.sequence).toBe(0);
    await replica.reader.close();
    await store.close();
  });
});

describe("an acknowledged revocation (R4, R10)", () => {
  it("also denies a token that was checked before and waits for its proof's record", async () => {
    const clock = new ManualClock();
    const token = rootToken(clock);
    const revoke = async () => {
      const chain = await replica.chains.proven(token);
      const entry = createRevocation(
        engine,
        (await blockIds(replica, token))[0] ?? "",
        "block",
        alice,
        clock.now(),
      );
      await replica.revocations.record(entry, "", chain.ok ? chain.blocks : []);
    };
    const seenProofs = { use: async () => revoke().then(() => "fresh") } as unknown as SeenProofs;
    const replica: Replica = createReplica({ store: await openMemory(), bus: openBus(), clock, seenProofs });
    await replica.reader.look();
    expect(await outcome(replica, clock, token, alice)).toBe(DenialType.REVOKED);
  });

  it("is in force in every interleaving, for each block, revoker and transport", async () => {
    const holders = [otherRoot, alice, bob, carol];
    const act = fc.record({
      level: fc.nat(2),
      revoker: fc.constantFrom(otherRoot, alice, bob, carol, mallory),
      scope: fc.constantFrom("block", "chain"),
      isBare: fc.boolean(),
    });
    const step = fc.oneof(
      act.map((revoke) => ({ revoke })),
      fc.nat(2).map((verify) => ({ verify })),
      fc.nat(3).map((pause) => ({ pause })),
    );
    const property = fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      const clock = new ManualClock();
      const store = await openMemory();
      // This replica gets no wake-ups, and no time passes. Its own acknowledged revocations must be in force
      // nevertheless.
      const replica = createReplica({ store, bus: deaf, clock });
      await replica.reader.start();
      const root = rootToken(clock);
      const second = forgeLink(root.token, alice, bob, {});
      const tokens = [root, second, forgeLink(second.token, bob, carol, {})];
      const ids = await blockIds(replica, tokens[2] as SerializedDCT);
      const acknowledged = new Set<number>();
      const sequences: number[] = [];
      const running: Promise<unknown>[] = [];

      for (const each of steps) {
        if ("pause" in each) for (let turn = 0; turn < each.pause; turn++) await setImmediate();
        else if ("revoke" in each) {
          const { level, revoker, scope, isBare } = each.revoke;
          // The rightful revokers of a block are its signer, the signers of the blocks above it, and its delegatee.
          const isRightful = holders.indexOf(revoker) <= level + 1 && revoker !== mallory;
          const entry = createRevocation(engine, ids[level] ?? "", scope as "block", revoker, clock.now());
          const chain = await replica.chains.proven(tokens[2] as SerializedDCT);
          const sent = isBare || !chain.ok ? [] : chain.blocks;
          const call = replica.revocations.record(entry, "", sent).then(
            (logged) => {
              if (logged !== undefined) sequences.push(logged.sequence);
              if (isRightful) acknowledged.add(level);
            },
            () => expect(isRightful).toBe(false),
          );
          running.push(call);
        } else {
          const at = each.verify;
          const mustBeDenied = [...acknowledged].some((level) => level <= at);
          const token = tokens[at] as SerializedDCT;
          const call = outcome(replica, clock, token, holders[at + 1] as Keypair).then((answer) => {
            if (mustBeDenied) expect(answer).toBe(DenialType.REVOKED);
            else expect(["allowed", DenialType.REVOKED]).toContain(answer);
          });
          running.push(call);
        }
      }
      await Promise.all(running);
      for (const [at, token] of tokens.entries()) {
        const answer = await outcome(replica, clock, token, holders[at + 1] as Keypair);
        const isRevoked = [...acknowledged].some((level) => level <= at);
        expect(answer).toBe(isRevoked ? DenialType.REVOKED : "allowed");
      }
      const last = replica.state.sequence;
      expect(sequences.every((sequence) => sequence >= 1 && sequence <= last)).toBe(true);
      await replica.reader.close();
      await store.close();
    });
    await fc.assert(property, { numRuns: 60 });
  });
});

describe("a changed log (R3)", () => {
  const start = async () => {
    const clock = new ManualClock();
    const store = await openMemory();
    const replica = createReplica({ store, bus: deaf, clock });
    await replica.reader.look();
    const token = rootToken(clock);
    // The revocation is for a block of another token. Without the conflict, this token would be allowed.
    const other = createRevocation(engine, "A".repeat(43), "block", otherRoot, clock.now());
    await store.write((tx) => replica.revocations.recordWithin(tx, other, ""));
    await replica.reader.look();
    return { clock, store, replica, token };
  };

  it.each([
    ["lost its entries", "DELETE FROM revocations"],
    ["has another head for an entry that was read", "UPDATE revocations SET head = 'another'"],
  ])("allows no further decision if it %s", async (_, sql) => {
    const { clock, store, replica, token } = await start();
    expect(await outcome(replica, clock, token, alice)).toBe("allowed");
    await store.write((tx) => tx.run(sql));
    await expect(replica.reader.look()).rejects.toThrow("revocation_state_conflict");
    expect(await outcome(replica, clock, token, alice)).toBe(DenialType.REVOCATION_STATE_CONFLICT);
    // After a conflict, no later entry makes the state valid again.
    await expect(replica.reader.look()).rejects.toThrow("revocation_state_conflict");
  });

  it.each([
    ["entry", "UPDATE revocations SET scope = 'chain'"],
    ["digest", "UPDATE revocations SET digest = 'another'"],
    ["head", "UPDATE revocations SET head = 'another'"],
  ])("is refused by a replica that reads it for the first time, with another %s (R8)", async (_, sql) => {
    const { clock, store } = await start();
    await store.write((tx) => tx.run(sql));
    const late = createReplica({ store, bus: deaf, clock });
    await expect(late.reader.look()).rejects.toThrow(
      "entry 1 of the revocation log does not match the hash chain",
    );
  });

  const SEAL_ROW = row({ digest: text, head: text });
  it("is sealed at the start if it was unsealed", async () => {
    const { clock, store } = await start();
    const seals = () => store.read((tx) => tx.all(SEAL_ROW, "SELECT digest, head FROM revocations"));
    const sealed = await seals();
    expect(sealed).toHaveLength(1);
    await store.write((tx) => tx.run("UPDATE revocations SET digest = '', head = ''"));
    while (await store.write((tx) => sealSome(tx, engine, 1)));
    expect(await seals()).toEqual(sealed);
    await createReplica({ store, bus: deaf, clock }).reader.look();
  });
});

it("only the whole id of a revoked block matches (R11)", () => {
  const state = new RevocationState(MAX_STALENESS_MS);
  const bytes = new Uint8Array(32).fill(7);
  const id = (change: number) => encodeBase64Url(bytes.map((byte, i) => (i === change ? byte + 1 : byte)));
  state.add({ sequence: 1, head: "h" }, id(-1));
  expect(state.isRevoked(id(-1), [])).toBe(true);
  // Each id differs from a revoked id in only one of the first 16 bytes, and does not count as revoked. So the state
  // compares all of the first 128 bits.
  for (let at = 0; at < 16; at++) expect(state.isRevoked(id(at), [])).toBe(false);
});
