import { describe, expect, test } from "vitest";
import { TokenError } from "./denial.ts";
import { revocationId } from "./payload.ts";
import { createRevocation, mayRevoke, RevocationList, verifyRevocation } from "./revocation.ts";
import { alice, bob, engine, id, mallory, NOW, root, rootToken } from "./testing/fixtures.ts";

const block = revocationId(engine, rootToken().authority);
const entry = createRevocation(engine, block, "block", root, NOW);
const blocks = [
  { revocationId: block, signer: id(root), delegatee: id(alice) },
  { revocationId: "B".repeat(43), signer: id(alice), delegatee: id(bob) },
];

describe("entries (DelegateOS 4.1)", () => {
  test("are signed by their revoker", () => {
    expect(verifyRevocation(engine, entry)).toEqual({ ok: true, value: entry });
    expect(verifyRevocation(engine, { ...entry, scope: "chain" }).ok).toBe(false);
    expect(verifyRevocation(engine, { ...entry, revokedBy: id(mallory) }).ok).toBe(false);
    expect(verifyRevocation(engine, null).ok).toBe(false);
  });

  test("a block outside the chain cannot be checked", () => {
    expect(mayRevoke({ revocationId: "C".repeat(43), revokedBy: id(root) }, blocks)).toBe(false);
    expect(mayRevoke(entry, [])).toBe(false);
  });
});

describe("list (DelegateOS 4.2)", () => {
  test("R1 a stranger's entry neither counts nor keeps out a rightful one", () => {
    const list = new RevocationList(engine);
    expect(list.add(createRevocation(engine, block, "chain", mallory, NOW)).ok).toBe(true);
    expect(list.isRevoked(block, [id(root), id(alice)])).toBe(false);
    expect(list.add(entry, blocks).ok).toBe(true);
    expect(list.isRevoked(block, [id(root), id(alice)])).toBe(true);
  });

  test("R1 with the chain an unrelated principal is refused at once", () => {
    const list = new RevocationList(engine);
    const added = list.add(createRevocation(engine, block, "chain", mallory, NOW), blocks);
    expect(added).toEqual({ ok: false, error: "not_authorized_to_revoke" });
    expect(list.size).toBe(0);
  });

  test("asked without the chain the safe answer is yes", () => {
    const list = new RevocationList(engine);
    list.add(createRevocation(engine, block, "chain", mallory, NOW));
    expect(list.isRevoked(block)).toBe(true);
    expect(list.isRevoked("D".repeat(43))).toBe(false);
    expect(list.isRevoked("__proto__")).toBe(false);
  });

  test("R2 the same entry again changes nothing; the wider scope stays", () => {
    const list = new RevocationList(engine);
    const wider = createRevocation(engine, block, "chain", root, NOW + 1);
    for (const one of [entry, entry, wider, entry]) expect(list.add(one).ok).toBe(true);
    expect(list.list()).toEqual([wider]);
    expect(list.size).toBe(1);
  });

  test("R3 what list returns is a copy", () => {
    const list = new RevocationList(engine);
    list.add(entry);
    const [copy] = list.list();
    (copy as { revokedBy: string }).revokedBy = id(mallory);
    list.list().pop();
    expect(list.list()).toEqual([entry]);
  });

  test("a forged entry is refused", () => {
    const list = new RevocationList(engine);
    expect(list.add({ ...entry, revokedBy: id(alice) }).ok).toBe(false);
    expect(list.isRevoked(block)).toBe(false);
  });

  test("R7 a full list refuses an entry, and keeps the others", () => {
    const list = new RevocationList(engine, 1);
    list.add(entry);
    expect(list.add(createRevocation(engine, block, "block", alice, NOW))).toEqual({
      ok: false,
      error: "full",
    });
    expect(list.add(createRevocation(engine, block, "chain", root, NOW)).ok).toBe(true);
    expect(list.list().map(({ scope }) => scope)).toEqual(["chain"]);
  });

  test("R8 a stored list is verified when it is read, and is read whole or not at all", () => {
    const list = new RevocationList(engine);
    list.add(entry);
    list.add(createRevocation(engine, block, "block", alice, NOW));
    const again = RevocationList.fromJSON(list.toJSON(), engine);
    expect(again.list()).toEqual(list.list());
    const forged = list.toJSON().replace('"block"', '"chain"');
    for (const bad of [forged, "{}", "[null]", "[", ""]) {
      expect(() => RevocationList.fromJSON(bad, engine)).toThrow(TokenError);
    }
  });
});
