import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type AuthorityExplanation,
  AuthorityExplanationSchema,
  BlockValidity,
  type ExplainedBlockSchema,
  type ToolCallFactsSchema,
} from "@depute/contracts/depute/tokens/v1/authority_explanation_pb";
import { isObject, toTimestamp } from "@depute/core";
import {
  type Attenuation,
  type Authority,
  type AuthorityStatement,
  type Capability,
  formatTime,
  parseTime,
  type StatedBlock,
  type StatedToolCall,
  type BlockValidity as Validity,
} from "@depute/dct";

/** The members of a recorded delegation that an explanation contains. Times are epoch milliseconds. */
interface RecordedDelegation {
  readonly id: string;
  readonly revocationId: string;
  readonly from: string;
  readonly to: string;
  readonly contractId: string;
  readonly depth: number;
  readonly createTime: number;
  readonly expireTime: number;
}

/** One delegation of a chain with the stored facts about its block. Times are epoch milliseconds. */
export interface ExplainedLink {
  readonly delegation: RecordedDelegation;
  /** The block as canonical JSON; empty if the store has no content for the block. */
  readonly document: string;
  /**
   * The earliest time at which a revocation of the block, or of its signer's key, was recorded. For the root block,
   * also the time at which the root key retired. Undefined for none.
   */
  readonly revokeTime: number | undefined;
  /** Whether the block is revoked now. A pending revocation counts too. */
  readonly isRevokedNow: boolean;
}

/** Returns the blocks of a chain, root first, each with its validity at the time `then` and at the time `now`. */
export function statedBlocks(chain: readonly ExplainedLink[], then: number, now: number): StatedBlock[] {
  return chain.map((link) => {
    const { delegation, document } = link;
    const { revocationId, id: delegationId, from: delegator, to: delegatee, contractId, depth } = delegation;
    const block: unknown = document === "" ? undefined : JSON.parse(document);
    return {
      ...{ revocationId, delegationId, delegator, delegatee, contractId, depth },
      recordTime: formatTime(delegation.createTime),
      expireTime: formatTime(delegation.expireTime),
      validityThen: validity(link, then, then >= now),
      validityNow: validity(link, now, true),
      ...(isObject(block) && { block: block as unknown as Authority | Attenuation }),
    };
  });
}

/** Returns a block's validity at a time. A block, like a token, is still valid in the millisecond of its expiry. */
function validity(
  { delegation, revokeTime, isRevokedNow }: ExplainedLink,
  at: number,
  isNow: boolean,
): Validity {
  if (at < delegation.createTime) return "not_recorded";
  if (isNow ? isRevokedNow : revokeTime !== undefined && revokeTime <= at) return "revoked";
  return at > delegation.expireTime ? "expired" : "valid";
}

const VALIDITIES = {
  valid: BlockValidity.VALID,
  not_recorded: BlockValidity.NOT_RECORDED,
  expired: BlockValidity.EXPIRED,
  revoked: BlockValidity.REVOKED,
} as const;

/** The authority that a block grants to its delegatee. */
interface Grant {
  readonly capabilities: readonly Capability[];
  readonly budget: number;
  readonly depth: number;
}

/** Converts a statement to its contract message. */
export function toExplanation(statement: AuthorityStatement): AuthorityExplanation {
  const { kind, subjectId, principal, onBehalfOf, validThen, validNow, receipt, toolCall } = statement;
  let above: Grant | undefined;
  const blocks = statement.blocks.map((block, i): MessageInitShape<typeof ExplainedBlockSchema> => {
    const grant = grantOf(block.block, above);
    const known = grant !== undefined;
    const narrowed = i === 0 ? [] : narrowedBy(block, statement.blocks[i - 1], grant, above);
    above = grant;
    const { delegationId, revocationId, delegator, delegatee, contractId } = block;
    return {
      ...{ delegationId, revocationId, delegator, delegatee, contractId, narrowed, contentKnown: known },
      ...(known && {
        capabilities: [...grant.capabilities],
        maxBudgetMicrocents: BigInt(grant.budget),
        remainingDepth: grant.depth,
      }),
      recordTime: toTimestamp(parseTime(block.recordTime) ?? 0),
      expireTime: toTimestamp(parseTime(block.expireTime) ?? 0),
      validityThen: VALIDITIES[block.validityThen],
      validityNow: VALIDITIES[block.validityNow],
    };
  });
  return create(AuthorityExplanationSchema, {
    ...{ kind, subjectId, principal, blocks, validThen, validNow },
    ...(onBehalfOf !== undefined && { onBehalfOf }),
    ...(receipt !== undefined && { receipt: { ...receipt, sequence: BigInt(receipt.sequence) } }),
    ...(toolCall !== undefined && { toolCall: toToolCall(toolCall) }),
    time: toTimestamp(parseTime(statement.time) ?? 0),
    explainTime: toTimestamp(parseTime(statement.explainTime) ?? 0),
  });
}

function toToolCall({
  resource,
  allowed: isAllowed,
  decisions,
}: StatedToolCall): MessageInitShape<typeof ToolCallFactsSchema> {
  return {
    ...{ resource, isAllowed },
    decisions: decisions.map(({ sequence, source, caller, time, allowed, reason }) => ({
      ...{ source, caller, reason, isAllowed: allowed, sequence: BigInt(sequence) },
      time: toTimestamp(parseTime(time) ?? 0),
    })),
  };
}

/** Returns the authority that a block grants; undefined if the content of this block or of a block above is unknown. */
function grantOf(block: Authority | Attenuation | undefined, above: Grant | undefined): Grant | undefined {
  if (block === undefined) return undefined;
  if ("issuer" in block) {
    const { capabilities, maxBudgetMicrocents: budget, maxChainDepth, chainDepth } = block;
    return { capabilities, budget, depth: maxChainDepth - chainDepth };
  }
  if (above === undefined) return undefined;
  return {
    capabilities: block.allowedCapabilities ?? above.capabilities,
    budget: Math.min(above.budget, block.maxBudgetMicrocents ?? above.budget),
    depth: Math.min(above.depth - 1, block.maxChainDepth ?? above.depth - 1),
  };
}

function narrowedBy(
  block: StatedBlock,
  stated: StatedBlock | undefined,
  grant: Grant | undefined,
  above: Grant | undefined,
): string[] {
  const isLess = {
    capabilities: textOf(grant?.capabilities) !== textOf(above?.capabilities),
    budget: grant !== undefined && above !== undefined && grant.budget < above.budget,
    // Each block reduces the depth by one. Only a further reduction is an attenuation of this block.
    depth: grant !== undefined && above !== undefined && grant.depth < above.depth - 1,
    lifetime: block.expireTime !== stated?.expireTime,
    contract: block.contractId !== stated?.contractId,
  };
  return Object.entries(isLess).flatMap(([name, less]) => (less ? [name] : []));
}

function textOf(capabilities: readonly Capability[] | undefined): string {
  return JSON.stringify(
    capabilities?.map(({ namespace, action, resource }) => [namespace, action, resource]),
  );
}
