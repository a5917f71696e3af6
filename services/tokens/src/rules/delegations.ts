import { DeputeError, ErrorReason, encodeBase64Url } from "@depute/core";
import {
  type Attestation,
  brokenInvariant,
  type CryptoEngine,
  type Delegation,
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

/** How a delegation ended by its delegatee's attestation (DelegateOS 7.1). */
export function attestedState({ result }: Attestation): "completed" | "failed" {
  return result.success && result.verificationOutcome?.passed !== false ? "completed" : "failed";
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
