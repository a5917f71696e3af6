import fc from "fast-check";
import { expect, test } from "vitest";
import { type CostNode, parentsFirst, totalCosts } from "./attestation-tree.ts";

/**
 * Computes the total cost of a node literally by its definition: sums the maximum cost of each delegation at or below
 * the node.
 */
function reference(nodes: readonly CostNode[], id: string): bigint {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const seenIds = new Set<string>();
  const open = [id];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (seenIds.has(at)) continue;
    seenIds.add(at);
    open.push(...(byId.get(at)?.children ?? []));
  }
  const delegations = new Set([...seenIds].map((each) => byId.get(each)?.delegation));
  return [...delegations].reduce((sum, delegation) => {
    const costs = nodes.filter((node) => node.delegation === delegation).map(({ cost }) => cost);
    return sum + BigInt(Math.max(...costs));
  }, 0n);
}

const graphs = fc
  .array(
    fc.record({ links: fc.array(fc.nat(99), { maxLength: 6 }), delegation: fc.nat(50), cost: fc.nat() }),
    { minLength: 1, maxLength: 60 },
  )
  .map((parts) =>
    parts.map(({ links, delegation, cost }, i): CostNode => {
      // A child always has a greater position than its parents. Every acyclic graph can be numbered in this way.
      const below = links.map((link) => i + 1 + link).filter((child) => child < parts.length);
      return {
        id: `n${i}`,
        children: [...new Set(below)].map((n) => `n${n}`),
        delegation: `d${delegation}`,
        cost,
      };
    }),
  );

test("a node's total counts every delegation below it once", () => {
  fc.assert(
    fc.property(graphs, (nodes) => {
      const totals = totalCosts(nodes);
      for (const { id } of nodes) expect(totals.get(id)).toBe(reference(nodes, id));
    }),
  );
});

test("sorts parents first and detects a cycle", () => {
  fc.assert(
    fc.property(graphs, fc.infiniteStream(fc.nat()), (nodes, keys) => {
      const shuffled = nodes.map((node) => ({ node, key: keys.next().value ?? 0 }));
      const mixed = shuffled.sort((a, b) => a.key - b.key).map(({ node }) => node);
      const sorted = parentsFirst(mixed)?.map(({ id }) => id) ?? [];
      expect(sorted).toHaveLength(nodes.length);
      for (const { id, children } of nodes) {
        for (const child of children) expect(sorted.indexOf(child)).toBeGreaterThan(sorted.indexOf(id));
      }
    }),
  );
  const circle = [
    { id: "a", children: ["b"] },
    { id: "b", children: ["a"] },
  ];
  expect(parentsFirst(circle)).toBeUndefined();
});

test("2,000 attestations of the largest cost add up exactly", () => {
  const nodes = Array.from({ length: 2000 }, (_, i) => ({
    id: `n${i}`,
    children: i === 1999 ? [] : [`n${i + 1}`],
    delegation: `d${i}`,
    cost: Number.MAX_SAFE_INTEGER,
  }));
  expect(totalCosts(nodes).get("n0")).toBe(2000n * BigInt(Number.MAX_SAFE_INTEGER));
});
