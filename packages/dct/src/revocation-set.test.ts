import fc from "fast-check";
import { expect, test } from "vitest";
import { revocationId } from "./payload.ts";
import { RevocationSet } from "./revocation-set.ts";
import { serialiseToken } from "./serialise.ts";
import { context, engine, rootToken } from "./testing/fixtures.ts";
import { verifyToken } from "./verify.ts";

const idOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64url");
/** Ids that vary little, so that equal ids occur. Each id has at most one byte that is not 0, at any place. */
const someId = fc.tuple(fc.nat(31), fc.nat(3)).map(([at, value]) => {
  const bytes = new Uint8Array(32);
  bytes[at] = value;
  return idOf(bytes);
});

test("property: answers like a Set of the same ids after any additions and removals", () => {
  const step = fc.record({ id: someId, operation: fc.constantFrom("add", "add", "delete") });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300, size: "max" }), fc.array(someId), (steps, probedIds) => {
      const [set, model] = [new RevocationSet(), new Set<string>()];
      for (const { id, operation } of steps) {
        if (operation === "add") expect(set.add(id)).toBe(!model.has(id));
        else expect(set.delete(id)).toBe(model.has(id));
        if (operation === "add") model.add(id);
        else model.delete(id);
      }
      expect(set.size).toBe(model.size);
      for (const id of [...probedIds, ...model]) expect(set.has(id)).toBe(model.has(id));
    }),
    { numRuns: 200 },
  );
});

test("holds 60,000 ids, in at most 64 bytes each at any size from 10,000", () => {
  const set = new RevocationSet();
  const ids: string[] = [];
  for (let i = 0; i < 60_000; i++) {
    const id = idOf(engine.blake2b256(new TextEncoder().encode(String(i))));
    ids.push(id);
    set.add(id);
    if (i >= 10_000 && i % 100 === 0) expect(set.bytes / set.size).toBeLessThanOrEqual(62);
  }
  expect(set.size).toBe(60_000);
  expect(ids.every((id) => set.has(id))).toBe(true);
  for (const [i, id] of ids.entries()) if (i % 2 === 0) expect(set.delete(id)).toBe(true);
  expect(ids.every((id, i) => set.has(id) === (i % 2 === 1))).toBe(true);
  expect(set.size).toBe(30_000);
});

test("R11 compares every bit", () => {
  const set = new RevocationSet();
  const bytes = engine.blake2b256(new Uint8Array(1));
  set.add(idOf(bytes));
  for (let bit = 0; bit < 256; bit++) {
    const other = bytes.slice();
    other[bit >> 3] = (other[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    expect(set.has(idOf(other))).toBe(false);
  }
});

test("refuses a malformed id, and does not contain it", () => {
  const set = new RevocationSet();
  set.add("A".repeat(43));
  expect(set.has("A".repeat(43))).toBe(true);
  for (const text of [
    "",
    "A".repeat(42),
    "A".repeat(44),
    `${"A".repeat(42)}B`,
    "__proto__",
    "=".repeat(43),
  ]) {
    expect(set.has(text)).toBe(false);
    expect(set.delete(text)).toBe(false);
    expect(() => set.add(text)).toThrow(RangeError);
  }
});

test("is used by a verifier", () => {
  const revocations = new RevocationSet();
  const token = rootToken();
  const text = serialiseToken(token);
  expect(verifyToken(engine, text, context({ revocations })).ok).toBe(true);
  revocations.add(revocationId(engine, token.authority));
  expect(verifyToken(engine, text, context({ revocations }))).toMatchObject({ denial: { type: "revoked" } });
});
