import { canonicalJson, encodeBase64Url } from "@depute/core";
import { assertBlockSignature, signBlock } from "./block-signature.ts";
import { type SubContractRule, walkChain } from "./chain.ts";
import type { CryptoEngine } from "./engine.ts";
import { readRemembered } from "./fast/words.ts";
import { newId } from "./names.ts";
import { BlockTexts, type ReadToken } from "./payload.ts";
import { readCanonical } from "./serialise.ts";
import type { ShapeRules } from "./structure.ts";
import { assertAttenuation, DEFAULT_RULES } from "./structure.ts";
import type { Attenuation, Capability, Keypair, SignedJSONToken } from "./types.ts";

/**
 * The holder's values for the token's next block. An absent limit keeps the value of the block above. Only an
 * absent `maxChainDepth` does not: the new block then allows one delegation fewer below it.
 */
export interface AttenuateParams {
  delegatee: string;
  /** The delegation's id; a new id is generated when absent. */
  delegationId?: string;
  /** The id of the contract; that of the block above when absent. */
  contractId?: string;
  /** The capabilities that the new block allows. An empty list allows none. */
  allowedCapabilities?: Capability[];
  maxBudgetMicrocents?: number;
  expiresAt?: string;
  maxChainDepth?: number;
}

/**
 * Options of an attenuation. `subContract` says whether one contract is a recorded sub-contract of another. Without
 * `subContract`, all blocks of a chain must name one contract.
 */
export interface AttenuateOptions {
  subContract?: SubContractRule;
  rules?: ShapeRules;
}

/**
 * Returns the next block of a token, checked and not yet signed (DelegateOS 3.4 steps 1 to 4). Throws TokenError when
 * the block is malformed, when `attenuator` is not the token's delegatee, or when the block would allow more than the
 * token does.
 */
export function buildAttenuation(
  token: SignedJSONToken,
  params: AttenuateParams,
  attenuator: string,
  options: AttenuateOptions = {},
): Attenuation {
  return lastOf(append(token, nextBlock(token, params, attenuator), options).token);
}

/** Returns the block with the holder's values, not yet checked. */
function nextBlock(token: SignedJSONToken, params: AttenuateParams, attenuator: string): Attenuation {
  const { allowedCapabilities, maxBudgetMicrocents, expiresAt, maxChainDepth } = params;
  const last = token.attenuations.at(-1) ?? token.authority;
  return {
    attenuator,
    delegatee: params.delegatee,
    delegationId: params.delegationId ?? newId("del"),
    contractId: params.contractId ?? last.contractId,
    ...(allowedCapabilities !== undefined && { allowedCapabilities }),
    ...(maxBudgetMicrocents !== undefined && { maxBudgetMicrocents }),
    ...(expiresAt !== undefined && { expiresAt }),
    ...(maxChainDepth !== undefined && { maxChainDepth }),
  };
}

/**
 * Returns the 32 bytes over which the holder makes an Ed25519 signature (DelegateOS 3.4 step 6), for a key that is
 * stored elsewhere. The bytes cover every existing block and the new block. Throws CanonicalError for a block that
 * is not JSON.
 */
export function attenuationSigningInput(
  engine: CryptoEngine,
  token: SignedJSONToken,
  attenuation: Attenuation,
): Uint8Array {
  const attenuations = [...token.attenuations, attenuation];
  return new BlockTexts(token.authority, attenuations).signedDigest(engine, attenuations.length);
}

/**
 * Adds a block that was signed elsewhere to a token, and returns the new token. Throws TokenError for each fault
 * that buildAttenuation refuses, and invalid_signature when the signature is not the attenuator's. Verifiers check
 * the earlier signatures.
 */
export function attachAttenuationSignature(
  engine: CryptoEngine,
  token: SignedJSONToken,
  attenuation: Attenuation,
  signature: Uint8Array,
  options: AttenuateOptions = {},
): SignedJSONToken {
  const longer = append(token, attenuation, options);
  const digest = signedDigestOf(engine, longer);
  assertBlockSignature(engine, digest, signature, attenuation.attenuator, lastPath(longer));
  return withSignature(longer, signature);
}

/**
 * Attenuates a token for the next delegatee, and signs the new block with the key of the current delegatee
 * (DelegateOS 3.4). Throws TokenError for each fault that buildAttenuation refuses, and invalid_signature if the
 * private key is not the principal's.
 */
export function attenuateToken(
  engine: CryptoEngine,
  token: SignedJSONToken,
  params: AttenuateParams,
  attenuator: Keypair,
  options: AttenuateOptions = {},
): SignedJSONToken {
  const longer = append(token, nextBlock(token, params, attenuator.principal.id), options);
  const digest = signedDigestOf(engine, longer);
  return withSignature(longer, signBlock(engine, digest, attenuator, lastPath(longer)));
}

/**
 * Adds a block to a copy of the token, and does not sign the block. Throws TokenError unless the new token is well
 * formed and grants no more than the old token.
 */
function append(token: SignedJSONToken, block: Attenuation, options: AttenuateOptions): ReadToken {
  const rules = options.rules ?? DEFAULT_RULES;
  assertAttenuation(block, rules);
  // Members in canonical order are written faster, and a token that was read has them in this order.
  const ordered: Attenuation = JSON.parse(canonicalJson(block));
  const json = canonicalJson({ ...token, attenuations: [...token.attenuations, ordered] });
  const longer = readCanonical(json, rules);
  walkChain(longer.token, options.subContract, readRemembered);
  return longer;
}

/** Returns the 32-byte digest that the last attenuation's signature has to cover. */
function signedDigestOf(engine: CryptoEngine, { token, texts }: ReadToken): Uint8Array {
  return texts.signedDigest(engine, token.attenuations.length);
}

/** Returns the token with the signature of its last attenuation added. */
function withSignature({ token }: ReadToken, signature: Uint8Array): SignedJSONToken {
  const signed = {
    covers: token.attenuations.length - 1,
    signature: encodeBase64Url(signature),
    signer: lastOf(token).attenuator,
  };
  return { ...token, signatures: [...token.signatures, signed] };
}

/** Returns the path by which errors name the last attenuation, such as `attenuations[0]`. */
function lastPath({ token }: ReadToken): string {
  return `attenuations[${token.attenuations.length - 1}]`;
}

function lastOf({ attenuations }: SignedJSONToken): Attenuation {
  return attenuations.at(-1) as Attenuation;
}
