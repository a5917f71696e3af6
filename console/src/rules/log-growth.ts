import type { LogHead } from "@depute/contracts/depute/verifier/v1/log_service_pb";

/** The combined result of a page's growth checks. Each check verifies that the log has only added leaves. */
export interface GrowthCheck {
  /** The number of verified consistency proofs. */
  readonly proofs: number;
  /** The head that the browser had verified before this page was opened; undefined for a first visit. */
  readonly since: LogHead | undefined;
  /** The reason why the log does not extend an earlier head; undefined while no fault was found. */
  readonly fault: string | undefined;
}

/** Adds the outcome of one more check to the state. A fault, once found, remains in the state. */
export function addedGrowth(before: GrowthCheck, found: GrowthCheck): GrowthCheck {
  return {
    proofs: before.proofs + found.proofs,
    since: before.since ?? found.since,
    fault: before.fault ?? found.fault,
  };
}

/**
 * Compares two heads of one log without a proof.
 *
 * @returns the reason why the later head cannot extend the earlier one; undefined if a consistency proof has
 *   to decide, or if both heads are the same
 */
export function faultBySize(first: LogHead, second: LogHead): string | undefined {
  if (second.treeSize < first.treeSize) {
    return `the log has ${second.treeSize} leaves, and had ${first.treeSize}`;
  }
  const isSame = first.rootHash.every((byte, index) => byte === second.rootHash[index]);
  if (second.treeSize === first.treeSize && !isSame) {
    return `the log has another root for the same ${second.treeSize} leaves`;
  }
  return undefined;
}
