import type { Step } from "./attestation-findings.ts";

/**
 * Maximum size of one tree: its attestations (`nodes`), links and levels, and the total characters of its documents.
 */
export const TREE_LIMITS = { nodes: 2000, links: 8000, levels: 32, chars: 64 * 1024 * 1024 } as const;

export type TreeStep = Step | "budget" | "authority";
export type Outcome = "passed" | "failed" | "inconclusive";

export interface TreeFinding {
  step: TreeStep;
  outcome: Outcome;
  details: string;
}

/** The facts about an attestation from which the rules compute costs. */
export interface CostNode {
  id: string;
  /** Ids of the child attestations. */
  children: readonly string[];
  /**
   * Identifies the delegation that caused the cost. If several attestations state the cost of one delegation, the cost
   * counts only once.
   */
  delegation: string;
  cost: number;
}

/**
 * Sums the cost of each node's subtree. Each delegation counts once, with the maximum cost that any node states for it.
 * A node with several parents counts once.
 *
 * @param nodes an acyclic graph, parents before children
 */
export function totalCosts(nodes: readonly CostNode[]): Map<string, bigint> {
  const costs = new Map<string, number>();
  const places = new Map<string, number>();
  for (const { delegation, cost } of nodes) {
    if (!places.has(delegation)) places.set(delegation, places.size);
    costs.set(delegation, Math.max(costs.get(delegation) ?? 0, cost));
  }
  const byPlace = [...places.keys()].map((delegation) => BigInt(costs.get(delegation) ?? 0));
  const below = new Map<string, Uint32Array>();
  const totals = new Map<string, bigint>();
  for (const { id, children, delegation } of nodes.toReversed()) {
    // The set has one bit for each delegation, so that the union of two sets is a fast operation.
    const set = new Uint32Array(Math.ceil(byPlace.length / 32));
    mark(set, places.get(delegation) ?? 0);
    for (const child of children) unite(set, below.get(child));
    below.set(id, set);
    totals.set(id, sumOf(set, byPlace));
  }
  return totals;
}

function mark(set: Uint32Array, place: number): void {
  set[place >>> 5] = (set[place >>> 5] ?? 0) | (1 << (place & 31));
}

function unite(set: Uint32Array, other: Uint32Array | undefined): void {
  if (other === undefined) return;
  for (let i = 0; i < set.length; i++) set[i] = (set[i] ?? 0) | (other[i] ?? 0);
}

function sumOf(set: Uint32Array, byPlace: readonly bigint[]): bigint {
  let sum = 0n;
  for (let i = 0; i < set.length; i++) {
    for (let word = set[i] ?? 0; word !== 0; word &= word - 1) {
      sum += byPlace[i * 32 + 31 - Math.clz32(word & -word)] ?? 0n;
    }
  }
  return sum;
}

/**
 * Sorts nodes so that parents come before their children, as totalCosts requires. Returns undefined if the graph has a
 * cycle.
 */
export function parentsFirst<T extends Pick<CostNode, "id" | "children">>(
  nodes: readonly T[],
): T[] | undefined {
  const waiting = new Map<string, number>();
  for (const { children } of nodes) {
    for (const child of children) waiting.set(child, (waiting.get(child) ?? 0) + 1);
  }
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const sorted = nodes.filter(({ id }) => !waiting.has(id));
  for (const { children } of sorted) {
    for (const child of children) {
      const remaining = (waiting.get(child) ?? 0) - 1;
      waiting.set(child, remaining);
      const node = byId.get(child);
      if (remaining === 0 && node !== undefined) sorted.push(node);
    }
  }
  return sorted.length === nodes.length ? sorted : undefined;
}

export function budgetFinding(total: bigint, maxBudgetMicrocents: number): TreeFinding {
  return total <= BigInt(maxBudgetMicrocents)
    ? passed("budget")
    : failed(
        "budget",
        `${total} microcents of the whole subtree exceed the budget of ${maxBudgetMicrocents}`,
      );
}

export function passed(step: TreeStep): TreeFinding {
  return { step, outcome: "passed", details: "" };
}

export function failed(step: TreeStep, details: string): TreeFinding {
  return { step, outcome: "failed", details };
}

export function inconclusive(step: TreeStep, details: string): TreeFinding {
  return { step, outcome: "inconclusive", details };
}
