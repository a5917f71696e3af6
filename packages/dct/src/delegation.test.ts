import { describe, expect, test } from "vitest";
import { attenuateToken } from "./attenuate.ts";
import { attestedState, brokenInvariant, isAttenuatedFrom } from "./delegation.ts";
import { alice, bob, carol, delegation, engine, id, root, rootToken } from "./testing/fixtures.ts";

const rootDelegation = {
  id: delegation(1),
  parentId: "del_000000000000",
  from: id(root),
  to: id(alice),
  depth: 0,
  token: rootToken(),
};
const child = {
  id: delegation(2),
  parentId: delegation(1),
  from: id(alice),
  to: id(bob),
  depth: 1,
  token: attenuateToken(
    engine,
    rootDelegation.token,
    { delegatee: id(bob), delegationId: delegation(2) },
    alice,
  ),
};

describe("invariants of a chain (DelegateOS 8.2)", () => {
  test("hold for a root and its child", () => {
    expect(brokenInvariant(rootDelegation, undefined, 3)).toBeUndefined();
    expect(brokenInvariant(child, rootDelegation, 3)).toBeUndefined();
  });

  test.each<[string, object, object | undefined, number, string]>([
    ["a root with a parent", { ...rootDelegation, parentId: delegation(7) }, undefined, 3, "parentId"],
    ["a root with depth", { ...rootDelegation, depth: 1 }, undefined, 3, "depth"],
    ["a child of another", { ...child, parentId: delegation(7) }, rootDelegation, 3, "parentId"],
    ["a child that another principal issued", { ...child, from: id(carol) }, rootDelegation, 3, "from"],
    ["a skipped level", { ...child, depth: 2 }, rootDelegation, 3, "depth"],
    ["too deep", child, rootDelegation, 0, "depth"],
    ["the parent's own token", { ...child, token: rootDelegation.token }, rootDelegation, 3, "dct"],
    [
      "a token of another root",
      {
        ...child,
        token: attenuateToken(engine, rootToken({ maxBudgetMicrocents: 1 }), { delegatee: id(bob) }, alice),
      },
      rootDelegation,
      3,
      "dct",
    ],
  ])("are broken by %s", (_, link, parent, depth, member) => {
    expect(brokenInvariant(link as typeof child, parent as typeof child, depth)).toMatch(
      new RegExp(`^${member}:`),
    );
  });

  test("a child of one sibling is not a child of another", () => {
    const sibling = attenuateToken(engine, rootDelegation.token, { delegatee: id(carol) }, alice);
    const below = attenuateToken(engine, child.token, { delegatee: id(carol) }, bob);
    expect(isAttenuatedFrom(below, child.token)).toBe(true);
    expect(isAttenuatedFrom(below, rootDelegation.token)).toBe(true);
    expect(isAttenuatedFrom(below, sibling)).toBe(false);
  });
});

describe("the end of a delegation through an attestation (DelegateOS 7.1)", () => {
  test.each([
    ["completed", { success: true }],
    ["completed", { success: true, verificationOutcome: { method: "schema_match", passed: true } }],
    ["failed", { success: true, verificationOutcome: { method: "schema_match", passed: false } }],
    ["failed", { success: false }],
  ])("is %s by %o", (state, result) => {
    expect(attestedState({ result: { ...result, costMicrocents: 0, durationMs: 0 } })).toBe(state);
  });
});
