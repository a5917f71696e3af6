import { expect, test } from "vitest";
import { consequencesOf } from "./consequences.ts";

const delegation = (id: string, parentId: string, root = "r") => ({
  id,
  parentId,
  revocationId: `rev-${id}`,
  rootRevocationId: root,
});

test("a revocation ends the block and all blocks below it, and no other", () => {
  const [root, a, b, a1, other] = [
    delegation("root", ""),
    delegation("a", "root"),
    delegation("b", "root"),
    delegation("a1", "a"),
    delegation("a2", "a", "another tree"),
  ];
  const all = [root, a, b, a1, other];
  expect(consequencesOf(a, all).map(({ id }) => id)).toEqual(["a", "a1"]);
  expect(consequencesOf(root, all).map(({ id }) => id)).toEqual(["root", "a", "b", "a1"]);
});

test("a chain that contains itself ends the search", () => {
  const loop = delegation("a", "a");
  expect(consequencesOf(loop, [loop])).toEqual([loop]);
});
