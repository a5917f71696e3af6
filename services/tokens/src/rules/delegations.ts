import { DeputeError, ErrorReason, encodeBase64Url } from "@depute/core";
import {
  brokenInvariant,
  type CryptoEngine,
  type Delegation,
  type DenialReason,
  type SignedJSONToken,
} from "@depute/dct";
import { type Block, blocksOf } from "./blocks.ts";

export type DelegationState = Delegation["status"];

/** One delegation of a chain, as a token says it (DelegateOS 8.1). */
export interface Link {
  /** Names the block and all above it, which its revocation id alone does not. */
  readonly chainId: string;
  /** Empty at a root. */
  readonly parentChainId: string;
  readonly parentDelegationId: string;
  readonly depth: number;
  readonly block: Block;
}

const utf8 = new TextEncoder();

/**
 * The delegations of a token whose chain was verified, the root first.
 *
 * Every link is held to DelegateOS 8.2 with the tokens as they were at each step. What a chain that verifies can still
 * break is the first invariant: an authority that names a parent, which its own token cannot be attenuated from.
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
    const chainId = encodeBase64Url(engine.blake2b256(utf8.encode(parentChainId + block.revocationId)));
    links.push({ chainId, parentChainId, parentDelegationId, depth, block });
    above = child;
  }
  return links;
}

/** One link of a recorded chain, as far as an attestation depends on it. Times are milliseconds since 1970. */
export interface RecordedLink {
  readonly revocationId: string;
  readonly from: string;
  readonly to: string;
  readonly state: DelegationState;
  readonly expireTime: number;
}

/**
 * Why the last delegatee of a chain may not attest any more; undefined while it may. A revoked block ends the authority of
 * every block below it, whatever the scope (DelegateOS 4.2, 10.1 steps 2 and 5).
 *
 * @param chain the root first
 * @param isRevoked whether the block is revoked, given the principals that may revoke it
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

/** What is known of a delegation's end. */
export interface End {
  readonly state: DelegationState;
  /** Empty for none. */
  readonly attestationId: string;
}

/**
 * Whether a delegation changes when somebody says how it ended; false when it was said before. An attestation that
 * comes later is added to the same end.
 *
 * @throws DeputeError DELEGATION_STATE_CONFLICT when it ended otherwise
 */
export function ends(delegationId: string, before: End, next: End): boolean {
  if (before.state === "active") return true;
  const isSame = before.state === next.state;
  if (isSame && (next.attestationId === "" || next.attestationId === before.attestationId)) return false;
  if (isSame && before.attestationId === "") return true;
  throw new DeputeError(ErrorReason.DELEGATION_STATE_CONFLICT, `the delegation is ${before.state}`, {
    metadata: { delegation: delegationId, from: before.state, to: next.state },
  });
}

function upTo(token: SignedJSONToken, level: number): SignedJSONToken {
  const { attenuations, signatures } = token;
  return { ...token, attenuations: attenuations.slice(0, level), signatures: signatures.slice(0, level + 1) };
}

function invalidDelegation(detail: string): DeputeError {
  return new DeputeError(ErrorReason.DELEGATION_INVALID, `the chain is no chain of delegations: ${detail}`, {
    metadata: { detail },
    violations: [{ field: "token", description: detail }],
  });
}
