import { expect, test } from "vitest";
import { placedTree } from "./tree.ts";

test("a parent is left of its children, in their middle", () => {
  const nodes = [
    { id: "root", parentId: "" },
    { id: "a", parentId: "root" },
    { id: "b", parentId: "root" },
    { id: "b1", parentId: "b" },
  ];
  const places = Object.fromEntries(placedTree(nodes).map(({ node, x, y }) => [node.id, [x, y]]));
  expect(places).toEqual({ root: [0, 44], a: [260, 0], b: [260, 88], b1: [520, 88] });
});

test("a task with an invisible parent is a root", () => {
  expect(placedTree([{ id: "a", parentId: "hidden" }]).map(({ x }) => x)).toEqual([0]);
});

test("a task that names itself as parent is a root", () => {
  expect(placedTree([{ id: "a", parentId: "a" }])).toHaveLength(1);
});
