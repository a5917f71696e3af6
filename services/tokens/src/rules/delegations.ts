import { canonicalJson, DeputeError, ErrorReason, encodeBase64Url } from "@depute/core";
import {
  brokenInvariant,
  type CryptoEngine,
  type Delegation,
  type DenialReason,
  type SignedJSONToken,
} from "@depute/dct";
import { type Block, blocksOf } from "./documents.ts";

export type DelegationState = Delegation["status"];

/** One delegation of a chain, as its token states it (DelegateOS 8.1). */
export interface Link {
  /**
   * Identifies the chain: the block together with all blocks above it. A revocation id identifies only the block, and
   * the same block may be in several chains.
   */
  readonly chainId: string;
  /** The `chainId` of the delegation above; empty for a root. */
  readonly parentChainId: string;
  readonly parentDelegationId: string;
  readonly depth: number;
  readonly block: Block;
  /** The block as canonical JSON, without its signature. The digest of this text is the revocation id. */
  readonly document: string;
}

const utf8 = new TextEncoder();

/**
 * Returns the delegations of a token with a verified chain, root first. Checks each delegation by the rules of
 * DelegateOS 8.2. Even a verified chain can break one of these rules: its authority block may name a parent, although a
 * root has no parent.
 *
 * @throws DeputeError DELEGATION_INVALID
 */
export function linksOf(engine: CryptoEngine, token: SignedJSONToken): Link[] {
  const { authority } = token;
  const blocks = blocksOf(engine, token);
  const links: Link[] = [];
  let above: Parameters<typeof brokenInvariant>[1];
  for (const [level, block] of blocks.entries()) {
    const parent = links[level - 1];
    const parentDelegationId = parent?.block.delegationId ?? authority.parentDelegationId;
    const depth = authority.chainDepth + level;
    const { delegationId: id, signer: from, delegatee: to } = block;
    const child = { id, parentId: parentDelegationId, from, to, depth, token: upTo(token, level) };
    const broken = brokenInvariant(child, above, authority.maxChainDepth);
    if (broken !== undefined) throw invalidDelegation(`block ${level}: ${broken}`);
    const parentChainId = parent?.chainId ?? "";
    const chainId = chainIdOf(engine, parentChainId, block.revocationId);
    const document = canonicalJson(level === 0 ? authority : token.attenuations[level - 1]);
    links.push({ chainId, parentChainId, parentDelegationId, depth, block, document });
    above = child;
  }
  return links;
}

/**
 * Returns the id of the chain that ends with a block. `parentChainId` is the id of the chain above the block; empty for
 * a root.
 */
export function chainIdOf(engine: CryptoEngine, parentChainId: string, revocationId: string): string {
  return encodeBase64Url(engine.blake2b256(utf8.encode(parentChainId + revocationId)));
}

/** The members of a recorded delegation that decide whether its delegatee may attest. Times are epoch milliseconds. */
export interface RecordedLink {
  readonly revocationId: string;
  readonly from: string;
  readonly to: string;
  readonly state: DelegationState;
  readonly expireTime: number;
}

/**
 * Returns the reason why a chain's last delegatee may not attest; undefined if it may. A revoked block ends the
 * authority of every block below it, whatever the scope of the revocation (DelegateOS 4.2, 10.1 steps 2 and 5).
 *
 * @param chain the chain, root first
 * @param isRevoked whether a block is revoked, given the principals that may revoke it
 */
export function lapsedAuthority(
  chain: readonly RecordedLink[],
  isRevoked: (revocationId: string, rightful: readonly string[]) => boolean,
  now: number,
): DenialReason | undefined {
  const signers: string[] = [];
  for (const { revocationId, from, to, state } of chain) {
    signers.push(from);
    if (state === "revoked" || isRevoked(revocationId, [...signers, to])) return { type: "revoked" };
  }
  return chain.some(({ expireTime }) => now > expireTime) ? { type: "expired" } : undefined;
}

/** The state of a delegation, and the attestation that ended it. */
export interface End {
  readonly state: DelegationState;
  /** The id of the attestation that states the end; empty without an attestation. */
  readonly attestationId: string;
}

/**
 * Whether `next` changes the delegation, whose recorded end is `before`. An end that equals the recorded end changes
 * nothing. If the recorded end has no attestation, an attestation may still be added.
 *
 * @throws DeputeError DELEGATION_STATE_CONFLICT when a different end is recorded
 */
export function isNewEnd(delegationId: string, before: End, next: End): boolean {
  if (before.state === "active") return true;
  const isSame = before.state === next.state;
  if (isSame && (next.attestationId === "" || next.attestationId === before.attestationId)) return false;
  if (isSame && before.attestationId === "") return true;
  throw new DeputeError(ErrorReason.DELEGATION_STATE_CONFLICT, `the delegation is already ${before.state}`, {
    metadata: { delegation: delegationId, from: before.state, to: next.state },
  });
}

function upTo(token: SignedJSONToken, level: number): SignedJSONToken {
  const { attenuations, signatures } = token;
  return { ...token, attenuations: attenuations.slice(0, level), signatures: signatures.slice(0, level + 1) };
}

function invalidDelegation(detail: string): DeputeError {
  return new DeputeError(
    ErrorReason.DELEGATION_INVALID,
    `the chain violates a delegation invariant: ${detail}`,
    {
      metadata: { detail },
      violations: [{ field: "token", description: detail }],
    },
  );
}
