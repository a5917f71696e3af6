import { setImmediate } from "node:timers/promises";
import { ManualClock } from "@depute/core";
import { attenuateToken, createRevocation, parseToken, type SignedJSONToken } from "@depute/dct";
import { FOUND, integer, row } from "@depute/store";
import { describe, expect, it } from "vitest";
import { linksOf } from "./rules/delegations.ts";
import { alice, bob, engine, id, otherRoot } from "./testing/holders.ts";
import { createReplica, openBus, openMemory, rootToken } from "./testing/parts.ts";

const MANY = 1200;

async function start() {
  const clock = new ManualClock();
  const store = await openMemory();
  const replica = createReplica({ store, bus: openBus(), clock });
  const parsed = parseToken(rootToken(clock));
  if (!parsed.ok) throw new Error(parsed.denial.type);
  const root: SignedJSONToken = parsed.token;
  const links = linksOf(engine, root);
  const [{ block }] = links as [(typeof links)[number]];
  const count = async (status: string) => {
    const sql = "SELECT COUNT(*) AS number FROM delegations WHERE status = ?";
    return (await store.read((tx) => tx.get(row({ number: integer }), sql, [status])))?.number;
  };
  const revoke = (scope: "block" | "chain") =>
    replica.revocations.record(
      createRevocation(engine, block.revocationId, scope, otherRoot, clock.now()),
      "",
      links.map((link) => link.block),
    );
  return { ...replica, clock, store, root, links, count, revoke };
}

/** A caller without organization. */
const NONE = { organization: "" };

async function fill({ store, delegations, root }: Awaited<ReturnType<typeof start>>) {
  await store.write(async (tx) => {
    for (let n = 0; n < MANY; n++) {
      const child = attenuateToken(engine, root, { delegatee: id(bob) }, alice);
      await delegations.record(tx, linksOf(engine, child), NONE);
    }
  });
}

describe("a revocation with the scope chain", () => {
  it("marks everything below in transactions of bounded size", async () => {
    const parts = await start();
    await fill(parts);
    expect(await parts.count("active")).toBe(MANY + 1);
    await parts.revoke("chain");
    for (let turn = 0; turn < 500 && (await parts.count("active")) !== 0; turn++) await setImmediate();
    expect(await parts.count("revoked")).toBe(MANY + 1);
    await parts.delegations.close();
    expect(await parts.store.read((tx) => tx.all(FOUND, "SELECT * FROM cascades"))).toEqual([]);
  });

  it("continues after a restart", async () => {
    const parts = await start();
    await fill(parts);
    const revoked = parts.revoke("chain");
    // The process stops before the remaining delegations are marked.
    await parts.delegations.close();
    await revoked;
    await setImmediate();
    expect(await parts.count("active")).toBeGreaterThan(0);
    const { delegations } = createReplica({ store: parts.store, bus: openBus(), clock: parts.clock });
    delegations.start();
    for (let turn = 0; turn < 500 && (await parts.count("active")) !== 0; turn++) await setImmediate();
    expect(await parts.count("revoked")).toBe(MANY + 1);
  });

  it("refuses records below it that were verified earlier", async () => {
    const { revoke, delegations, store, root, count } = await start();
    const child = linksOf(engine, attenuateToken(engine, root, { delegatee: id(bob) }, alice));
    await revoke("chain");
    await expect(store.write((tx) => delegations.record(tx, child, NONE))).rejects.toThrow("revoked");
    expect(await count("active")).toBe(0);
  });
});

it("recording a chain again changes nothing", async () => {
  const { store, delegations, links, count, clock } = await start();
  await store.write((tx) => delegations.record(tx, links, NONE));
  const [before] = await delegations.list(
    { principal: undefined, contractId: undefined, state: undefined },
    0,
    10,
  );
  clock.advance(1000);
  await store.write((tx) => delegations.record(tx, links, NONE));
  const after = await delegations.list(
    { principal: id(alice), contractId: undefined, state: undefined },
    0,
    10,
  );
  expect(after).toEqual([before]);
  expect(await count("active")).toBe(1);
});

it("a delegation belongs to the owner of the one above, for any recorder of the chain", async () => {
  const { store, delegations, root, links } = await start();
  const child = linksOf(engine, attenuateToken(engine, root, { delegatee: id(bob) }, alice));
  await store.write((tx) => delegations.record(tx, links, { organization: "acme" }));
  await store.write((tx) => delegations.record(tx, child, { organization: "globex" }));
  const listed = await delegations.list(
    { principal: undefined, contractId: undefined, state: undefined },
    0,
    10,
  );
  expect(listed.map(({ organization }) => organization)).toEqual(["acme", "acme"]);
});
