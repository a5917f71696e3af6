import type { DenialReason } from "@depute/dct";

/** DelegateOS 10.1 fixes the order of the checks. So a denial shows that every earlier check passed. */

/**
 * Denials that may come after the check of the proof. `malformed_token` is one of them, because a malformed time is
 * detected that late.
 */
const AFTER_PROOF: ReadonlySet<DenialReason["type"]> = new Set([
  "malformed_token",
  "expired",
  "budget_exceeded",
  "contract_mismatch",
  "invalid_resource",
  "capability_not_granted",
]);

/**
 * Whether the denial of a parsed token may come from a check that runs after the check of the proof. If so, the
 * proof must be checked again. False for denials that always come before the check of the proof.
 */
export function isAfterProof({ type }: DenialReason): boolean {
  return AFTER_PROOF.has(type);
}

/**
 * Whether a denial shows that the token's signatures and attenuation are valid, in a check without a requested
 * capability.
 */
export function chainHolds({ type }: DenialReason): boolean {
  return type === "expired" || type === "budget_exceeded";
}

/**
 * Whether the check behind this denial runs after the budget check. If the budget is spent, the result is the
 * budget denial instead.
 */
export function isAfterBudget({ type }: DenialReason): boolean {
  return type === "contract_mismatch" || type === "invalid_resource" || type === "capability_not_granted";
}
