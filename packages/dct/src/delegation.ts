import { canonicalJson } from "@depute/core";
import { type Attestation, type Delegation, ROOT_DELEGATION_ID, type SignedJSONToken } from "./types.ts";

type Link = Pick<Delegation, "id" | "parentId" | "from" | "to" | "depth">;

/**
 * Returns the invariant of DelegateOS 8.2 that a delegation breaks, e.g. `parentId: not the parent`;
 * undefined if it breaks none. `parent` is absent for a root. `maxChainDepth` is the limit in the root's token.
 */
export function brokenInvariant(
  child: Link & { token: SignedJSONToken },
  parent: (Link & { token: SignedJSONToken }) | undefined,
  maxChainDepth: number,
): string | undefined {
  if (child.depth > maxChainDepth) return "depth: over the root's maxChainDepth";
  if (parent === undefined) {
    if (child.parentId !== ROOT_DELEGATION_ID) return "parentId: not that of a root";
    return child.depth === 0 ? undefined : "depth: not 0 at a root";
  }
  if (child.parentId !== parent.id) return "parentId: not the parent";
  if (child.from !== parent.to) return "from: not the parent's delegate";
  if (child.depth !== parent.depth + 1) return "depth: not one below the parent";
  return isAttenuatedFrom(child.token, parent.token) ? undefined : "dct: not attenuated from the parent's";
}

/** Whether `child` extends `parent`: it begins with the same blocks and signatures, and has at least one more block. */
export function isAttenuatedFrom(child: SignedJSONToken, parent: SignedJSONToken): boolean {
  const depth = parent.attenuations.length;
  if (child.attenuations.length <= depth) return false;
  const start = {
    ...child,
    attenuations: child.attenuations.slice(0, depth),
    signatures: child.signatures.slice(0, depth + 1),
  };
  return canonicalJson(start) === canonicalJson(parent);
}

/**
 * Returns the final state of a delegation by its delegatee's attestation (DelegateOS 7.1, 8.1): `completed` for a
 * success whose verification, if the attestation has one, passed.
 */
export function attestedState({ result }: Pick<Attestation, "result">): "completed" | "failed" {
  return result.success && result.verificationOutcome?.passed !== false ? "completed" : "failed";
}
