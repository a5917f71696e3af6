import type { LogHead } from "@depute/contracts/depute/verifier/v1/log_service_pb";

/** The combined result of a page's growth checks. Each check verifies that only leaves were added to the log. */
export interface GrowthCheck {
  /** The number of verified consistency proofs. */
  readonly proofs: number;
  /** The head that this browser had verified before the first check; undefined if there was none. */
  readonly since: LogHead | undefined;
  /** The reason why the log does not extend an earlier head; undefined if no check has found a fault. */
  readonly fault: string | undefined;
}

/** Combines the earlier result with the result of one more check. A fault stays in the result. */
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
 * @returns the reason why the later head cannot extend the earlier head; undefined if only a consistency proof can
 * decide, or if both heads are the same
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
