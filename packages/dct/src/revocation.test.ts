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

  test("cannot be checked for a block outside the chain", () => {
    expect(mayRevoke({ revocationId: "C".repeat(43), revokedBy: id(root) }, blocks)).toBe(false);
    expect(mayRevoke(entry, [])).toBe(false);
  });
});

describe("list (DelegateOS 4.2)", () => {
  test("R1 ignores a stranger's entry, and still accepts a rightful one", () => {
    const list = new RevocationList(engine);
    expect(list.add(createRevocation(engine, block, "chain", mallory, NOW)).ok).toBe(true);
    expect(list.isRevoked(block, [id(root), id(alice)])).toBe(false);
    expect(list.add(entry, blocks).ok).toBe(true);
    expect(list.isRevoked(block, [id(root), id(alice)])).toBe(true);
  });

  test("R1 refuses an unrelated principal at once if the chain is known", () => {
    const list = new RevocationList(engine);
    const added = list.add(createRevocation(engine, block, "chain", mallory, NOW), blocks);
    expect(added).toEqual({ ok: false, error: "not_authorized_to_revoke" });
    expect(list.size).toBe(0);
  });

  test("answers yes if the chain is unknown", () => {
    const list = new RevocationList(engine);
    list.add(createRevocation(engine, block, "chain", mallory, NOW));
    expect(list.isRevoked(block)).toBe(true);
    expect(list.isRevoked("D".repeat(43))).toBe(false);
    expect(list.isRevoked("__proto__")).toBe(false);
  });

  test("R2 does not change with a repeated entry, and keeps the wider scope", () => {
    const list = new RevocationList(engine);
    const wider = createRevocation(engine, block, "chain", root, NOW + 1);
    for (const one of [entry, entry, wider, entry]) expect(list.add(one).ok).toBe(true);
    expect(list.list()).toEqual([wider]);
    expect(list.size).toBe(1);
  });

  test("R3 returns a copy", () => {
    const list = new RevocationList(engine);
    list.add(entry);
    const [copy] = list.list();
    (copy as { revokedBy: string }).revokedBy = id(mallory);
    list.list().pop();
    expect(list.list()).toEqual([entry]);
  });

  test("refuses a forged entry", () => {
    const list = new RevocationList(engine);
    expect(list.add({ ...entry, revokedBy: id(alice) }).ok).toBe(false);
    expect(list.isRevoked(block)).toBe(false);
  });

  test("R7 refuses an entry when it is full, and keeps the others", () => {
    const list = new RevocationList(engine, 1);
    list.add(entry);
    expect(list.add(createRevocation(engine, block, "block", alice, NOW))).toEqual({
      ok: false,
      error: "full",
    });
    expect(list.add(createRevocation(engine, block, "chain", root, NOW)).ok).toBe(true);
    expect(list.list().map(({ scope }) => scope)).toEqual(["chain"]);
  });

  test("R8 is verified when it is read, and is read completely or not at all", () => {
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
