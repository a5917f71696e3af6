import type { DenialReason } from "@depute/dct";

/** DelegateOS 10.1 fixes the order of the checks, so a denial shows that every earlier check passed. */

/**
 * Denials that may follow the check of the proof. `malformed_token` is among them, because the check of times comes
 * that late.
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
 * Whether the denial of a parsed token may come from a check after that of the proof. If so, the caller must check the
 * proof again.
 */
export function isAfterProof({ type }: DenialReason): boolean {
  return AFTER_PROOF.has(type);
}

/**
 * Whether a denial shows that the token's signatures and attenuation are valid. Use it only after a check without a
 * requested capability.
 */
export function chainHolds({ type }: DenialReason): boolean {
  return type === "expired" || type === "budget_exceeded";
}

/**
 * Whether the check behind this denial follows the budget check. If the budget is exhausted, the budget denial takes
 * precedence.
 */
export function isAfterBudget({ type }: DenialReason): boolean {
  return type === "contract_mismatch" || type === "invalid_resource" || type === "capability_not_granted";
}
