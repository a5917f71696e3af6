import type { Capability } from "./types.ts";

/** Why a token was denied: the types of DelegateOS 10.1, and below the line Depute's own. */
export const DENIAL_TYPES = [
  "malformed_token",
  "revoked",
  "invalid_signature",
  "attenuation_violation",
  "expired",
  "budget_exceeded",
  "capability_not_granted",
  // ---
  "chain_depth_exceeded",
  "contract_mismatch",
  "invalid_resource",
  "token_too_large",
  "proof_required",
  "invalid_proof",
  "replayed_proof",
  "internal_context",
  "revocation_state_stale",
  "revocation_state_conflict",
  "not_authorized_to_revoke",
] as const;

export type DenialType = (typeof DENIAL_TYPES)[number];

/**
 * A denial (DelegateOS 10.1, 11.2). `detail` is for programs: where in the token, and what, in this package's own
 * words; text of the sender's stands in `requested` alone, 64 characters a member at most. `granted` is stated only
 * to a holder who proved possession. `max` and `actual` belong to chain_depth_exceeded, `level` (0 is the authority)
 * to budget_exceeded.
 */
export interface DenialReason {
  type: DenialType;
  detail?: string;
  requested?: Capability;
  granted?: Capability[];
  max?: number;
  actual?: number;
  level?: number;
}

/** What the functions that make tokens throw: the token would be denied, for this reason. */
export class TokenError extends Error {
  override readonly name = "TokenError";
  readonly denial: DenialReason;

  constructor(denial: DenialReason) {
    super(denial.detail === undefined ? denial.type : `${denial.type}: ${denial.detail}`);
    this.denial = denial;
  }
}

/** Throws TokenError. */
export function deny(
  type: DenialType,
  detail?: string,
  more: Omit<DenialReason, "type" | "detail"> = {},
): never {
  throw new TokenError(detail === undefined ? { type, ...more } : { type, detail, ...more });
}
