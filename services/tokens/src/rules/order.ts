import type { DenialReason } from "@depute/dct";

/**
 * The order of DelegateOS 10.1 says what held when a token is denied: a reason is given only after everything before
 * it has passed.
 */

/** Reasons that are looked at after the signatures; a malformed token is one when its times are what is wrong. */
const AFTER_PROOF: ReadonlySet<DenialReason["type"]> = new Set([
  "malformed_token",
  "expired",
  "budget_exceeded",
  "contract_mismatch",
  "invalid_resource",
  "capability_not_granted",
]);

/**
 * Whether a denial of a token that could be parsed may have come after its holder's proof was found to hold, so that
 * the proof has to be looked at again. No for what is certain to have come before.
 */
export function isAfterProof({ type }: DenialReason): boolean {
  return AFTER_PROOF.has(type);
}

/** Whether a token that is denied without any right being asked for has signatures that hold and blocks that narrow. */
export function chainHolds({ type }: DenialReason): boolean {
  return type === "expired" || type === "budget_exceeded";
}

/** Whether a denial may have come after the budget was looked at, so that a budget that is spent comes before it. */
export function isAfterBudget({ type }: DenialReason): boolean {
  return type === "contract_mismatch" || type === "invalid_resource" || type === "capability_not_granted";
}
