import { DeputeError, ErrorReason } from "@depute/core";
import { attestationNotFound } from "./attestations.ts";
import { TREE_LIMITS } from "./rules/attestation-tree.ts";
import type { Attestation } from "./rules/documents.ts";
import { getAttestations } from "./store/attestations.ts";
import type { StoredDocument } from "./store/documents.ts";
import type { Verifier } from "./verifier.ts";
import type { YieldToEventLoop } from "./yield-to-event-loop.ts";

/** Maximum number of attestations that one transaction reads. */
const BATCH = 50;

export interface CollectedNode {
  attestation: Attestation;
  storeTime: number;
  /** Number of links on the shortest path from the root to this attestation. */
  depth: number;
}

/**
 * Reads a stored attestation and all its descendants, ordered by depth, root first.
 *
 * @throws DeputeError ATTESTATION_NOT_FOUND, LIMIT_EXCEEDED
 */
// biome-ignore lint/complexity/noExcessiveCognitiveComplexity: one bounded walk over the tree
export async function collectTree(
  { store }: Verifier,
  rootId: string,
  yieldToEventLoop: YieldToEventLoop,
): Promise<CollectedNode[]> {
  const nodesById = new Map<string, CollectedNode>();
  let [links, chars] = [0, 0];
  for (let wave = [rootId], depth = 0; wave.length > 0; depth += 1) {
    if (depth >= TREE_LIMITS.levels) throw tooBig("levels");
    const next = new Set<string>();
    for (let at = 0; at < wave.length; at += BATCH) {
      const ids = wave.slice(at, at + BATCH);
      const rows = await store.read((tx) => getAttestations(tx, ids));
      for (const id of ids) {
        const row = rows.get(id);
        if (row === undefined) throw attestationNotFound(id);
        chars += row.document.length;
        if (chars > TREE_LIMITS.chars) throw tooBig("chars");
        const node = nodeOf(row, depth);
        nodesById.set(row.id, node);
        links += node.attestation.childAttestations.length;
        if (links > TREE_LIMITS.links) throw tooBig("links");
        for (const child of node.attestation.childAttestations) if (!nodesById.has(child)) next.add(child);
        await yieldToEventLoop();
      }
      if (nodesById.size + next.size > TREE_LIMITS.nodes) throw tooBig("nodes");
    }
    wave = [...next].filter((id) => !nodesById.has(id));
  }
  return [...nodesById.values()];
}

function nodeOf({ document, storeTime }: StoredDocument, depth: number): CollectedNode {
  return { attestation: JSON.parse(document) as Attestation, storeTime, depth };
}

function tooBig(limit: keyof typeof TREE_LIMITS): DeputeError {
  return new DeputeError(
    ErrorReason.LIMIT_EXCEEDED,
    `the tree has more than ${TREE_LIMITS[limit]} ${limit}`,
    {
      metadata: { limit: `tree_${limit}`, max: String(TREE_LIMITS[limit]) },
    },
  );
}
