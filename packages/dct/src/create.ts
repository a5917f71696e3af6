import { encodeBase64Url } from "@depute/core";
import { deny } from "./denial.ts";
import type { CryptoEngine } from "./engine.ts";
import { newId } from "./ids.ts";
import { DEFAULT_LIFETIME_MS, MAX_LIFETIME_MS } from "./limits.ts";
import { NamespaceRegistry } from "./namespaces.ts";
import { BlockTexts } from "./payload.ts";
import { parsePrincipal } from "./principal.ts";
import type { ShapeRules } from "./shape.ts";
import { assertAuthority, assertToken, DEFAULT_RULES } from "./structure.ts";
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

/** What an issuer says of a new token; the rest has defaults. */
export interface CreateParams {
  delegatee: string;
  capabilities: Capability[];
  contractId: string;
  maxBudgetMicrocents: number;
  /** Further delegations that are allowed below this one, plus `chainDepth`. */
  maxChainDepth: number;
  /** Made up when absent. */
  delegationId?: string;
  /** A root has none, and depth 0. */
  parentDelegationId?: string;
  chainDepth?: number;
  /** Now when absent. */
  issuedAt?: string;
  /** One hour after issuedAt when absent; at most 24 hours. */
  expiresAt?: string;
}

/** Options of the functions that make blocks. `now` is milliseconds since 1970, the machine's clock when absent. */
export interface CreateOptions {
  now?: number;
  maxLifetimeMs?: number;
  rules?: ShapeRules;
  /** Which namespaces and actions there are; those of the text and every custom one when absent. */
  namespaces?: Pick<NamespaceRegistry, "knows">;
}

/**
 * An authority block, checked and not yet signed (DelegateOS 3.3 step 1). Throws TokenError, as for a namespace or
 * action that is not registered and not custom (section 12).
 */
export function buildAuthority(issuer: string, params: CreateParams, options: CreateOptions = {}): Authority {
  const issuedAt = params.issuedAt ?? formatTime(options.now ?? Date.now());
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

/** The 32 bytes that an issuer who keeps his key elsewhere has to sign with Ed25519 (DelegateOS 3.3 step 3). */
export function authoritySigningInput(engine: CryptoEngine, authority: Authority): Uint8Array {
  return new BlockTexts(authority, []).signedDigest(engine, 0);
}

/** The token of an authority that was signed elsewhere. Throws TokenError: invalid_signature when it is not the issuer's. */
export function attachAuthoritySignature(
  engine: CryptoEngine,
  authority: Authority,
  signature: Uint8Array,
  rules: ShapeRules = DEFAULT_RULES,
): SignedJSONToken {
  assertAuthority(authority, rules);
  const key = parsePrincipal(authority.issuer) ?? deny("malformed_token", "authority.issuer");
  if (!engine.verify(signature, authoritySigningInput(engine, authority), key))
    deny("invalid_signature", "authority");
  const token: SignedJSONToken = {
    format: SJT_FORMAT,
    authority,
    attenuations: [],
    signatures: [{ signer: authority.issuer, signature: encodeBase64Url(signature), covers: "authority" }],
  };
  assertToken(token, rules);
  return token;
}

/** A new root token, signed by its issuer (DelegateOS 3.3). Throws TokenError. */
export function createToken(
  engine: CryptoEngine,
  params: CreateParams,
  issuer: Keypair,
  options: CreateOptions = {},
): SignedJSONToken {
  const authority = buildAuthority(issuer.principal.id, params, options);
  const signature = engine.sign(authoritySigningInput(engine, authority), issuer.privateKey);
  return attachAuthoritySignature(engine, authority, signature, options.rules);
}

function assertLifetime(authority: Authority, maxLifetimeMs: number): void {
  const lifetime = (parseTime(authority.expiresAt) ?? 0) - (parseTime(authority.issuedAt) ?? 0);
  if (lifetime > maxLifetimeMs)
    deny("malformed_token", `authority.expiresAt: lives longer than ${maxLifetimeMs} ms`);
}
