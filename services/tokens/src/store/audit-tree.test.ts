import { ManualClock } from "@depute/core";
import { type AuditSeal, leafHash, verifyInclusion } from "@depute/dct/transparency";
import { FOUND, type Store } from "@depute/store";
import { afterEach, beforeEach, expect, it } from "vitest";
import { auditLine } from "../rules/audit-message.ts";
import { engine } from "../testing/holders.ts";
import { openMemory } from "../testing/parts.ts";
import { appendDecisions, readDecisions } from "./audit-rows.ts";
import { findSeal, sealPastDay } from "./audit-seal-rows.ts";
import { auditPath, forgetDecisions } from "./audit-tree.ts";

const DAY_MS = 24 * 3_600_000;
const { sha256 } = engine;

let store: Store;
let clock: ManualClock;
beforeEach(async () => {
  store = await openMemory();
  clock = new ManualClock();
});
afterEach(() => store.close());

/** Appends records in batches, each a millisecond later. */
async function append(count: number, batch = 100): Promise<void> {
  const own = { kind: "inspect", caller: "c", principal: "", decision: "allowed", reason: "" } as const;
  for (let at = 0; at < count; at += batch) {
    const rows = Array.from({ length: Math.min(batch, count - at) }, () => ({ ...own, blocks: [] }));
    const now = clock.now();
    const decisions = rows.map((row) => ({ ...row, time: now, source: "tokens", call: {} }));
    await store.write((tx) => appendDecisions(tx, decisions, { sha256, now }));
    clock.advance(1);
  }
}
async function endDay(): Promise<void> {
  clock.advance(DAY_MS);
  await store.write((tx) => sealPastDay(tx, { sha256, now: clock.now() }));
}
const sealOf = (id: number) => store.read((tx) => findSeal(tx, id));

/**
 * Returns the ids of some readable records, the first and the last among them (`read`). `proven` has those with a valid
 * proof, and `count` is the number of all readable records.
 */
async function provable(): Promise<{ read: number[]; proven: number[]; count: number }> {
  const all = await store.read((tx) => readDecisions(tx, 0, 10_000));
  const entries = all.filter(({ id }, at) => at < 2 || at > all.length - 4 || id % 128 < 2);
  const proven: number[] = [];
  for (const entry of entries) {
    const { id } = entry;
    const seal = await sealOf(id);
    if (seal?.rootHash === undefined) continue;
    const path = await store.read((tx) => auditPath(tx, sha256, { seal, id }));
    if (path === undefined) continue;
    const { firstSequence: first, lastSequence: last, rootHash: root } = seal as Required<AuditSeal>;
    const place = { index: id - first, treeSize: last - first + 1, root, proof: path };
    if (verifyInclusion(sha256, { ...place, leaf: leafHash(sha256, auditLine(entry)) })) proven.push(id);
  }
  return { read: entries.map(({ id }) => id), proven, count: all.length };
}
const nodes = async () => (await store.read((tx) => tx.all(FOUND, "SELECT * FROM audit_nodes"))).length;

it.each([1, 2, 255, 256, 257, 512, 700])("proves the records of a day of %i", async (count) => {
  await append(3);
  await endDay();
  await append(count);
  await endDay();
  const found = await provable();
  expect(found.count).toBe(3 + count);
  expect(found.proven).toEqual(found.read);
  expect(await nodes()).toBe(count < 256 ? 0 : count < 512 ? 1 : 3);
});

it.each([1, 100, 255, 256, 300, 511, 512, 600])(
  "proves the others after %i were deleted",
  async (deleted) => {
    await append(700, 1);
    const begin = clock.now() - 700;
    await endDay();
    await append(2);
    await endDay();
    for (let left = deleted; left > 0; left -= 90)
      await store.write((tx) =>
        forgetDecisions(tx, sha256, { before: begin + deleted, limit: Math.min(left, 90) }),
      );
    const { read, proven, count } = await provable();
    expect([count, read[0]]).toEqual([702 - deleted, deleted + 1]);
    expect(proven).toEqual(read);
  },
);

it("keeps no hash of a day whose records are all deleted", async () => {
  await append(600, 300);
  await endDay();
  await append(1);
  await endDay();
  await store.write((tx) => forgetDecisions(tx, sha256, { before: clock.now() - DAY_MS - 1, limit: 1000 }));
  expect(await provable()).toEqual({ read: [601], proven: [601], count: 1 });
  expect(await nodes()).toBe(0);
});

it("deletes records of the open day, and proves the others when it is over", async () => {
  await append(300, 1);
  await store.write((tx) => forgetDecisions(tx, sha256, { before: clock.now() - 200, limit: 1000 }));
  await append(300);
  await endDay();
  const { read, proven, count } = await provable();
  expect([read[0], count]).toEqual([101, 500]);
  expect(proven).toEqual(read);
});

it("gives no root to a day in which a version without trees wrote", async () => {
  await append(5);
  // A version without trees changes `last_id`, but no column of the tree.
  await store.write((tx) => tx.run("UPDATE audit_state SET last_id = last_id + 1"));
  await append(5);
  await endDay();
  expect(await sealOf(3)).toMatchObject({ firstSequence: 1, lastSequence: 11 });
  expect((await sealOf(3))?.rootHash).toBeUndefined();
  await append(5);
  await endDay();
  expect((await sealOf(12))?.rootHash).toHaveLength(32);
});
