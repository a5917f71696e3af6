import type { SubContractRule } from "./chain.ts";
import type { HolderSession } from "./session/holder-session.ts";
import type { ShapeRules } from "./structure.ts";
import type { Capability } from "./types.ts";

/**
 * The verifier's source of revocations. RevocationList implements this interface; a service may use a faster
 * implementation.
 */
export interface RevocationView {
  /**
   * Whether a principal that may revoke a block has revoked it. `rightful` lists the principals that may revoke the
   * block, according to the presented chain. An entry by another principal must not count.
   */
  isRevoked(revocationId: string, rightful: readonly string[]): boolean;
  /**
   * Whether the revocations are older than the configured bound. Without this function, revocations are never
   * stale.
   */
  isStale?(now: number): boolean;
}

/** A proof of possession that came with the token, and the values to which the proof must be bound (RFC 9449). */
export interface Presentation {
  readonly proof: string | undefined;
  /** The holder session that the proof belongs to; absent for a standalone proof. */
  readonly session?: HolderSession;
  readonly htm: string;
  readonly htu: string;
  /**
   * Whether two addresses are the same target; see {@link ProofExpectation}. This function does not apply to proofs
   * of a holder session: their address must equal `htu` exactly.
   */
  readonly isSameTarget?: (claimed: string, htu: string) => boolean;
  /** The argumentsDigest of the call's arguments, for a tool call. */
  readonly ard?: string;
  readonly windowMs?: number;
  readonly skewMs?: number;
}

/** The context of a token's verification (DelegateOS 10.1). */
export interface VerificationContext {
  /** The principals whose root tokens are accepted. With an empty set every token is denied. */
  readonly trustedRoots: ReadonlySet<string>;
  readonly revocations: RevocationView;
  /** The time of the verification, in milliseconds since 1970. */
  readonly now: number;
  /**
   * The microcents spent so far: a number for the last block alone, or a function from a block's revocation id to
   * the block's spend. With a function, every block's own limit is checked, so that siblings cannot jointly exceed
   * their parent.
   */
  readonly spentMicrocents: number | ((revocationId: string) => number);
  /**
   * How the presenter shows possession of the token.
   * - A Presentation is checked here.
   * - `proved`: possession was checked before.
   * - `bearer`: no check. Every attenuation is then advisory, because a holder can remove its own block. Use
   * `bearer` only without a presenter, or where a setting allows it.
   */
  readonly holder: Presentation | "proved" | "bearer";
  /** The requested capability; absent to verify only the token itself. */
  readonly request?: Capability;
  /** The contract that is executed; the token must be for this contract. When absent, the token may be for any. */
  readonly contractId?: string;
  /**
   * Required capabilities of the contract as `namespace:action` (DelegateOS 5.2). The token must cover each of them.
   */
  readonly requiredCapabilities?: readonly string[];
  readonly subContract?: SubContractRule;
  /** Maximum lifetime from issuedAt to expiresAt, in milliseconds; 24 hours when absent. */
  readonly maxLifetimeMs?: number;
  /** Maximum time by which issuedAt may lie in the future, in milliseconds; 30 seconds when absent. */
  readonly clockSkewMs?: number;
  /**
   * The verifier's own limit on the depth of chains, in addition to the limit in the token; no own limit when absent.
   */
  readonly maxChainDepth?: number;
  readonly rules?: ShapeRules;
}
