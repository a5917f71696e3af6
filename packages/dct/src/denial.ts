import type { Capability } from "./types.ts";

/** The reasons for which a token is denied: first the types of DelegateOS 10.1, then Depute's own types. */
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
  "root_retired",
] as const;

export type DenialType = (typeof DENIAL_TYPES)[number];

/**
 * A denial (DelegateOS 10.1, 11.2). `detail` is for programs: the location and the fault in this package's own words.
 * Only `requested` repeats the sender's text, at most 64 characters per member. `granted` is set only for a holder that
 * proved possession. `max` and `actual` belong to chain_depth_exceeded. `level` (0 for the authority) belongs to
 * budget_exceeded.
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

/** Thrown for a token or signed object that a verifier would deny. `denial` is the reason. */
export class TokenError extends Error {
  override readonly name = "TokenError";
  readonly denial: DenialReason;

  constructor(denial: DenialReason) {
    super(denial.detail === undefined ? denial.type : `${denial.type}: ${denial.detail}`);
    this.denial = denial;
  }
}

/** Always throws TokenError with the given denial. */
export function deny(
  type: DenialType,
  detail?: string,
  more: Omit<DenialReason, "type" | "detail"> = {},
): never {
  throw new TokenError(detail === undefined ? { type, ...more } : { type, detail, ...more });
}
