import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { AuthorizedScope } from "@depute/contracts/delegateos/v0/delegation_pb";
import { AuthorizedScopeSchema } from "@depute/contracts/delegateos/v0/delegation_pb";
import { type TokenBlock, TokenBlockSchema } from "@depute/contracts/depute/tokens/v1/verification_pb";
import {
  type CryptoEngine,
  formatTime,
  parseTime,
  parseToken,
  revocationIds,
  type AuthorizedScope as Scope,
  type SignedJSONToken,
  type TokenInput,
} from "@depute/dct";

/** One block of a token with what the chain says of it. */
export interface Block {
  readonly revocationId: string;
  /** The block above; empty for the authority. */
  readonly parentId: string;
  readonly signer: string;
  readonly delegatee: string;
  readonly delegationId: string;
  readonly contractId: string;
  /** When authority ends at this block: the earliest expiry of it and those above. Milliseconds since 1970. */
  readonly expiresAt: number;
  /** What the block itself says of its end; 0 where it says nothing. */
  readonly ownExpiry: number;
}

/** A token's blocks, the authority first. Nothing is verified: it is what the token says. */
export function blocksOf(engine: CryptoEngine, token: SignedJSONToken): Block[] {
  const ids = revocationIds(engine, token);
  const { authority, attenuations } = token;
  let expiresAt = parseTime(authority.expiresAt) ?? 0;
  const at = (level: number) => ({ revocationId: ids[level] ?? "", parentId: ids[level - 1] ?? "" });
  const { issuer: signer, delegatee, delegationId, contractId } = authority;
  const ownExpiry = expiresAt;
  const blocks: Block[] = [{ ...at(0), signer, delegatee, delegationId, contractId, expiresAt, ownExpiry }];
  for (const [i, { attenuator, ...block }] of attenuations.entries()) {
    const ownExpiry = parseTime(block.expiresAt) ?? 0;
    expiresAt = Math.min(expiresAt, ownExpiry || expiresAt);
    blocks.push({
      ...at(i + 1),
      signer: attenuator,
      delegatee: block.delegatee,
      delegationId: block.delegationId,
      contractId: block.contractId,
      expiresAt,
      ownExpiry,
    });
  }
  return blocks;
}

/** Blocks as the contracts have them. */
export function toTokenBlocks(blocks: readonly Omit<Block, "parentId" | "ownExpiry">[]): TokenBlock[] {
  // Most blocks end when the one before them ends.
  let written = { ms: Number.NaN, text: "" };
  return blocks.map(({ revocationId, signer, delegatee, delegationId, contractId, expiresAt: ms }) => {
    if (ms !== written.ms) written = { ms, text: formatTime(ms) };
    const expiresAt = written.text;
    return create(TokenBlockSchema, { revocationId, signer, delegatee, delegationId, contractId, expiresAt });
  });
}

/** What a token allows, as the contracts have it. */
export function toAuthorizedScope(scope: Scope): AuthorizedScope {
  const init: MessageInitShape<typeof AuthorizedScopeSchema> = {
    capabilities: scope.capabilities,
    remainingBudgetMicrocents: BigInt(scope.remainingBudgetMicrocents),
    chainDepth: BigInt(scope.chainDepth),
    maxChainDepth: BigInt(scope.maxChainDepth),
    contractId: scope.contractId,
    delegationId: scope.delegationId,
  };
  return create(AuthorizedScopeSchema, init);
}

/** The token in a text, if it is one. */
export function parsed(input: TokenInput): SignedJSONToken | undefined {
  const result = parseToken(input);
  return result.ok ? result.token : undefined;
}
