import type { SubContractRule } from "./chain.ts";
import { deny } from "./denial.ts";
import type { HolderSession } from "./session/holder-session.ts";
import type { ShapeRules } from "./shape.ts";
import { isCount } from "./shape.ts";
import type { Capability } from "./types.ts";

/** What a verifier knows of revocations. RevocationList is one; a service may have a faster one. */
export interface RevocationView {
  /**
   * Whether a block is revoked by someone who may: `rightful` are the principals who may revoke this block, by the
   * chain that was presented. An entry by anyone else must not count.
   */
  isRevoked(revocationId: string, rightful: readonly string[]): boolean;
  /** Whether what is known is older than the bound that was configured; absent means never. */
  isStale?(now: number): boolean;
}

/** A proof of possession that came with the token, and what it has to be bound to (RFC 9449). */
export interface Presentation {
  readonly proof: string | undefined;
  /** The session that the proof belongs to; absent for a proof by itself. */
  readonly session?: HolderSession;
  readonly htm: string;
  readonly htu: string;
  /** As in ProofExpectation; a session's proofs are compared as they are spelled. */
  readonly isSameTarget?: (claimed: string, htu: string) => boolean;
  /** argumentsDigest of the call's arguments, for a tool call. */
  readonly ard?: string;
  readonly windowMs?: number;
  readonly skewMs?: number;
}

/** What a token is verified against (DelegateOS 10.1). */
export interface VerificationContext {
  /** Principals whose roots are accepted. None: every token is denied. */
  readonly trustedRoots: ReadonlySet<string>;
  readonly revocations: RevocationView;
  /** Milliseconds since 1970. */
  readonly now: number;
  /**
   * Microcents spent so far: under the last block, or a function that says it for each block by its revocation id.
   * With a function every block's own limit is checked, so that siblings cannot jointly exceed their parent.
   */
  readonly spentMicrocents: number | ((revocationId: string) => number);
  /**
   * How the presenter shows that he holds the token. A presentation is checked here. `proved`: the caller has checked
   * it already. `bearer`: not at all, and then every attenuation is advisory, since a holder can strip his own; say
   * it only where no presenter is involved or a setting allows it.
   */
  readonly holder: Presentation | "proved" | "bearer";
  /** What is to be done; absent where only the token itself is in question. */
  readonly request?: Capability;
  /** The contract that is executed; not compared when absent. */
  readonly contractId?: string;
  /** `namespace:action` of the contract (DelegateOS 5.2), each to be covered. */
  readonly requiredCapabilities?: readonly string[];
  readonly subContract?: SubContractRule;
  /** Longest life from issuedAt to expiresAt, in milliseconds; 24 hours when absent. */
  readonly maxLifetimeMs?: number;
  /** How far issuedAt may lie in the future, in milliseconds; 30 seconds when absent. */
  readonly clockSkewMs?: number;
  /** A cap of the verifier's on the depth of chains, below the token's own. */
  readonly maxChainDepth?: number;
  readonly rules?: ShapeRules;
}

/** Throws TokenError with internal_context for a context that would make a comparison lie, as NaN does. */
export function assertContext(ctx: VerificationContext): void {
  const wrong = wrongMember(ctx);
  if (wrong !== undefined) deny("internal_context", wrong);
}

function wrongMember(ctx: VerificationContext): string | undefined {
  if (!(ctx.trustedRoots instanceof Set)) return "trustedRoots";
  if (typeof ctx.revocations?.isRevoked !== "function") return "revocations";
  if (!isCount(ctx.now)) return "now";
  if (typeof ctx.spentMicrocents !== "function" && !isCount(ctx.spentMicrocents)) return "spentMicrocents";
  for (const member of ["maxLifetimeMs", "clockSkewMs", "maxChainDepth"] as const) {
    if (ctx[member] !== undefined && !isCount(ctx[member])) return member;
  }
  const { holder, request } = ctx;
  const isPresentation = typeof holder === "object" && holder !== null;
  if (holder !== "bearer" && holder !== "proved" && !isPresentation) return "holder";
  if (isPresentation && (typeof holder.htm !== "string" || typeof holder.htu !== "string")) return "holder";
  if (
    request !== undefined &&
    (typeof request?.namespace !== "string" || typeof request.action !== "string")
  ) {
    return "request";
  }
  return undefined;
}
