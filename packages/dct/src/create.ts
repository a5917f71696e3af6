import { encodeBase64Url, systemClock } from "@depute/core";
import { assertBlockSignature, signBlock } from "./block-signature.ts";
import { deny } from "./denial.ts";
import type { CryptoEngine } from "./engine.ts";
import { DEFAULT_LIFETIME_MS, MAX_LIFETIME_MS } from "./limits.ts";
import { NamespaceRegistry, newId } from "./names.ts";
import { BlockTexts } from "./payload.ts";
import type { ShapeRules } from "./structure.ts";
import { assertAuthority, DEFAULT_RULES } from "./structure.ts";
import { formatTime, parseTime } from "./time.ts";
import {
  type Authority,
  type Capability,
  type Keypair,
  ROOT_DELEGATION_ID,
  type SignedJSONToken,
  SJT_FORMAT,
} from "./types.ts";

const ANY_CUSTOM = new NamespaceRegistry();

/** An issuer's input for a new token; absent members have defaults. */
export interface CreateParams {
  delegatee: string;
  capabilities: Capability[];
  contractId: string;
  maxBudgetMicrocents: number;
  /**
   * Maximum `chainDepth` of tokens below this one: `chainDepth` plus the number of further delegations that are
   * allowed.
   */
  maxChainDepth: number;
  /** The delegation's id; a new id is generated when absent. */
  delegationId?: string;
  /** The delegation above this one; absent for a root, which has depth 0. */
  parentDelegationId?: string;
  chainDepth?: number;
  /** The time of issue; the current time when absent. */
  issuedAt?: string;
  /**
   * The expiry; one hour after issuedAt when absent. It may be at most `maxLifetimeMs` of CreateOptions after
   * issuedAt, or 24 hours if `maxLifetimeMs` is absent.
   */
  expiresAt?: string;
}

/** Options of the functions that make blocks. `now` is in milliseconds since 1970; the machine's clock when absent. */
export interface CreateOptions {
  now?: number;
  maxLifetimeMs?: number;
  rules?: ShapeRules;
  /**
   * The known namespaces and actions. When absent: the namespaces of the specification and every custom
   * namespace.
   */
  namespaces?: Pick<NamespaceRegistry, "knows">;
}

/**
 * Returns an authority block, checked and not yet signed (DelegateOS 3.3 step 1). Throws TokenError for a malformed
 * block, a lifetime or a depth over its limit, or a namespace and action that `options.namespaces` does not know.
 * Throws RangeError for a time outside the years 0 to 9999.
 */
export function buildAuthority(issuer: string, params: CreateParams, options: CreateOptions = {}): Authority {
  const issuedAt = params.issuedAt ?? formatTime(options.now ?? systemClock.now());
  const start = parseTime(issuedAt) ?? deny("malformed_token", "authority.issuedAt: not a time");
  const authority: Authority = {
    issuer,
    delegatee: params.delegatee,
    capabilities: params.capabilities.map((capability) => ({ ...capability })),
    contractId: params.contractId,
    delegationId: params.delegationId ?? newId("del"),
    parentDelegationId: params.parentDelegationId ?? ROOT_DELEGATION_ID,
    chainDepth: params.chainDepth ?? 0,
    maxChainDepth: params.maxChainDepth,
    maxBudgetMicrocents: params.maxBudgetMicrocents,
    expiresAt: params.expiresAt ?? formatTime(start + DEFAULT_LIFETIME_MS),
    issuedAt,
  };
  assertAuthority(authority, options.rules ?? DEFAULT_RULES);
  assertLifetime(authority, options.maxLifetimeMs ?? MAX_LIFETIME_MS);
  if (authority.chainDepth > authority.maxChainDepth) {
    deny("chain_depth_exceeded", "authority", { max: authority.maxChainDepth, actual: authority.chainDepth });
  }
  const namespaces = options.namespaces ?? ANY_CUSTOM;
  for (const [i, { namespace, action }] of authority.capabilities.entries()) {
    if (!namespaces.knows(namespace, action)) {
      deny("malformed_token", `authority.capabilities[${i}]: neither registered nor custom org:namespace`);
    }
  }
  return authority;
}

/**
 * Returns the 32 bytes over which the issuer makes an Ed25519 signature (DelegateOS 3.3 step 3), for a key that is
 * stored elsewhere. Throws CanonicalError for a block that is not JSON.
 */
export function authoritySigningInput(engine: CryptoEngine, authority: Authority): Uint8Array {
  return new BlockTexts(authority, []).signedDigest(engine, 0);
}

/**
 * Builds a token from an authority block and a signature that was made elsewhere. Throws TokenError for an invalid
 * block, and invalid_signature when the signature is not the issuer's.
 */
export function attachAuthoritySignature(
  engine: CryptoEngine,
  authority: Authority,
  signature: Uint8Array,
  rules: ShapeRules = DEFAULT_RULES,
): SignedJSONToken {
  assertAuthority(authority, rules);
  const digest = authoritySigningInput(engine, authority);
  assertBlockSignature(engine, digest, signature, authority.issuer, "authority");
  return withSignature(authority, signature);
}

/**
 * Returns a new root token, signed by its issuer (DelegateOS 3.3). Throws the errors of buildAuthority, and
 * TokenError (invalid_signature) if the private key is not the issuer's.
 */
export function createToken(
  engine: CryptoEngine,
  params: CreateParams,
  issuer: Keypair,
  options: CreateOptions = {},
): SignedJSONToken {
  const authority = buildAuthority(issuer.principal.id, params, options);
  const digest = authoritySigningInput(engine, authority);
  return withSignature(authority, signBlock(engine, digest, issuer, "authority"));
}

/** Returns the token that consists of an authority block and its signature. The caller has checked both. */
function withSignature(authority: Authority, signature: Uint8Array): SignedJSONToken {
  return {
    format: SJT_FORMAT,
    authority,
    attenuations: [],
    signatures: [{ covers: "authority", signature: encodeBase64Url(signature), signer: authority.issuer }],
  };
}

function assertLifetime(authority: Authority, maxLifetimeMs: number): void {
  const lifetime = (parseTime(authority.expiresAt) ?? 0) - (parseTime(authority.issuedAt) ?? 0);
  if (lifetime > maxLifetimeMs)
    deny("malformed_token", `authority.expiresAt: lives longer than ${maxLifetimeMs} ms`);
}
