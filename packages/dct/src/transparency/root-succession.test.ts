import { describe, expect, it } from "vitest";
import { alice, bob, engine, id, mallory, root } from "../testing/fixtures.ts";
import {
  followRootSuccessions,
  isSignedRootSuccession,
  type RootSuccession,
  signRootSuccession,
} from "./root-succession.ts";

const AT = "2026-01-02T03:04:05.006Z";
const first = signRootSuccession(engine, root, alice, AT);
const second = signRootSuccession(engine, alice, bob, AT);

describe("a statement of succession", () => {
  it("holds with both signatures", () => {
    expect(isSignedRootSuccession(engine, first)).toBe(true);
  });

  it.each<[string, Partial<RootSuccession>]>([
    ["another earlier key", { from: id(mallory) }],
    ["another new key", { to: id(mallory) }],
    ["another time", { createdAt: "2026-01-02T03:04:05.007Z" }],
    ["the earlier key's signature alone", { toSignature: first.fromSignature }],
    ["the new key's signature alone", { fromSignature: first.toSignature }],
    ["no signature", { fromSignature: "" }],
  ])("does not hold with %s", (_, changed) => {
    expect(isSignedRootSuccession(engine, { ...first, ...changed })).toBe(false);
  });
});

describe("a reader with a pinned root", () => {
  const follow = (pinned: string[], ...statements: RootSuccession[]) => [
    ...followRootSuccessions(engine, pinned, statements),
  ];
  const forged = { ...signRootSuccession(engine, mallory, bob, AT), from: id(root) };
  const cycle = signRootSuccession(engine, bob, root, AT);

  it.each<[string, string[], RootSuccession[], string[]]>([
    ["follows a chain in any order", [id(root)], [second, first], [id(root), id(alice), id(bob)]],
    ["stops at a gap", [id(root)], [second], [id(root)]],
    ["does not go back", [id(bob)], [first, second], [id(bob)]],
    ["ignores a forged statement", [id(root)], [forged], [id(root)]],
    ["ends at a cycle", [id(root)], [first, second, cycle], [id(root), id(alice), id(bob)]],
    ["trusts nothing without a pinned root", [], [first], []],
  ])("%s", (_, pinned, statements, roots) => {
    expect(follow(pinned, ...statements)).toEqual(roots);
  });
});
