/** A node of a tree of tasks. `placedTree` adds the node's coordinates. */
export interface TreeNode {
  readonly id: string;
  /** The id of the node above; empty for a root. */
  readonly parentId: string;
}

export interface Placed<Node> {
  readonly node: Node;
  readonly x: number;
  readonly y: number;
}

const WIDTH = 260;
const HEIGHT = 88;

/**
 * Lays out a tree from left to right: each leaf has its own row, and a parent is in the middle of its children. A node
 * whose parent is unknown counts as a root.
 */
export function placedTree<Node extends TreeNode>(nodes: readonly Node[]): Placed<Node>[] {
  const knownIds = new Set(nodes.map(({ id }) => id));
  const parts = new Map<string, Node[]>();
  for (const node of nodes) {
    const above = knownIds.has(node.parentId) && node.parentId !== node.id ? node.parentId : "";
    parts.set(above, [...(parts.get(above) ?? []), node]);
  }
  const placed: Placed<Node>[] = [];
  let line = 0;
  const place = (node: Node, depth: number): number => {
    const below = (parts.get(node.id) ?? []).map((part) => place(part, depth + 1));
    const first = below[0];
    const last = below.at(-1);
    const y = first === undefined || last === undefined ? line++ * HEIGHT : (first + last) / 2;
    placed.push({ node, x: depth * WIDTH, y });
    return y;
  };
  for (const root of parts.get("") ?? []) place(root, 0);
  return placed;
}
