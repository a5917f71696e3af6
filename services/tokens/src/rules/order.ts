import type { DenialReason } from "@depute/dct";

/**
 * DelegateOS 10.1 fixes the order of the checks, so a denial shows that all checks before the failed check succeeded.
 */

/**
 * Types of denials by checks that come after the check of the proof. `malformed_token` is one of them, because a
 * malformed time is found only after the check of the proof.
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
 * Whether a check after that of the proof may have denied a parsed token. The proof may then be valid, so TokenVerifier
 * checks the proof separately.
 */
export function isAfterProof({ type }: DenialReason): boolean {
  return AFTER_PROOF.has(type);
}

/**
 * Whether a denial shows that the token's signatures and attenuation are valid. Use this function only after a
 * verification without a requested capability.
 */
export function chainHolds({ type }: DenialReason): boolean {
  return type === "expired" || type === "budget_exceeded";
}

/**
 * Whether a check after the budget check denied the token. If the budget is also exhausted, the budget denial takes
 * precedence.
 */
export function isAfterBudget({ type }: DenialReason): boolean {
  return type === "contract_mismatch" || type === "invalid_resource" || type === "capability_not_granted";
}
