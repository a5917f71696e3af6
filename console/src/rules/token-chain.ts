import type { Capability, SignedJSONToken } from "@depute/dct";

/** One block of a token. A member that the block does not change is absent. */
export interface ChainBlock {
  readonly signer: string;
  readonly delegatee: string;
  readonly delegationId: string;
  readonly capabilities?: readonly string[];
  /** The budget that the block sets, in microcents. */
  readonly budget?: number;
  readonly expiresAt?: string;
  readonly hops?: number;
  /** The names of the members that the block sets. */
  readonly narrowed: readonly string[];
}

/** Returns the blocks of a token, the authority block first. Does not check the signatures. */
export function chainBlocks({ authority, attenuations }: SignedJSONToken): ChainBlock[] {
  const first: ChainBlock = {
    signer: authority.issuer,
    delegatee: authority.delegatee,
    delegationId: authority.delegationId,
    capabilities: authority.capabilities.map(words),
    budget: authority.maxBudgetMicrocents,
    expiresAt: authority.expiresAt,
    hops: authority.maxChainDepth,
    narrowed: ["capabilities", "budget", "expiresAt", "hops"],
  };
  const others = attenuations.map((block): ChainBlock => {
    const { allowedCapabilities, maxBudgetMicrocents, expiresAt, maxChainDepth } = block;
    const set = {
      ...(allowedCapabilities !== undefined && { capabilities: allowedCapabilities.map(words) }),
      ...(maxBudgetMicrocents !== undefined && { budget: maxBudgetMicrocents }),
      ...(expiresAt !== undefined && { expiresAt }),
      ...(maxChainDepth !== undefined && { hops: maxChainDepth }),
    };
    const { attenuator: signer, delegatee, delegationId } = block;
    return { signer, delegatee, delegationId, ...set, narrowed: Object.keys(set) };
  });
  return [first, ...others];
}

function words({ namespace, action, resource }: Capability): string {
  return `${namespace}:${action} ${resource}`;
}
