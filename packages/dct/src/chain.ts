import { containmentBudget, contains, type WorkBudget } from "./contain.ts";
import { deny } from "./denial.ts";
import { matches, type Path, type Pattern, type PatternReader, parsePattern } from "./glob.ts";
import { parseTime } from "./time.ts";
import type { Attenuation, Authority, Capability, SignedJSONToken } from "./types.ts";

/** What a chain allows after one of its blocks. */
export interface Level {
  /** Who signed the block: the issuer, or the attenuator. */
  readonly signer: string;
  readonly delegatee: string;
  readonly delegationId: string;
  readonly contractId: string;
  readonly capabilities: readonly Capability[];
  readonly maxBudgetMicrocents: number;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
  /** Delegations above this one; 0 at a root. */
  readonly chainDepth: number;
  /** Further delegations that are allowed below this one. */
  readonly remainingDepth: number;
}

/** Whether a contract is a recorded sub-contract of another. */
export type SubContractRule = (child: string, parent: string) => boolean;

/**
 * Walks a chain from its authority down (DelegateOS 10.1 step 4), and returns what it allows at each block. Throws
 * TokenError at the first block that allows more than the one before.
 */
export function walkChain(
  token: Pick<SignedJSONToken, "authority" | "attenuations">,
  subContract: SubContractRule = onlyTheSame,
  readPattern: PatternReader = parsePattern,
): Level[] {
  const walk: Walk = { subContract, readPattern, work: containmentBudget() };
  let level = rootLevel(token.authority);
  const levels = [level];
  for (let i = 0; i < token.attenuations.length; i++) {
    level = narrow(level, token.attenuations[i] as Attenuation, i, walk);
    levels.push(level);
  }
  return levels;
}

/** What a walk down one chain goes by. */
interface Walk {
  readonly subContract: SubContractRule;
  readonly readPattern: PatternReader;
  readonly work: WorkBudget;
}

function rootLevel(authority: Authority): Level {
  const remainingDepth = authority.maxChainDepth - authority.chainDepth;
  if (remainingDepth < 0) {
    const bounds = { max: authority.maxChainDepth, actual: authority.chainDepth };
    deny("chain_depth_exceeded", "authority", bounds);
  }
  return {
    signer: authority.issuer,
    delegatee: authority.delegatee,
    delegationId: authority.delegationId,
    contractId: authority.contractId,
    capabilities: authority.capabilities,
    maxBudgetMicrocents: authority.maxBudgetMicrocents,
    expiresAt: instant(authority.expiresAt),
    chainDepth: authority.chainDepth,
    remainingDepth,
  };
}

function narrow(parent: Level, block: Attenuation, index: number, walk: Walk): Level {
  const path = `attenuations[${index}]`;
  if (block.attenuator !== parent.delegatee) deny("attenuation_violation", `${path}: attenuator mismatch`);
  if (block.allowedCapabilities !== undefined) {
    assertNarrower(parent.capabilities, block.allowedCapabilities, path, walk);
  }
  const maxBudgetMicrocents = block.maxBudgetMicrocents ?? parent.maxBudgetMicrocents;
  if (maxBudgetMicrocents > parent.maxBudgetMicrocents) {
    deny("attenuation_violation", `${path}: budget expansion`);
  }
  const expiresAt = block.expiresAt === undefined ? parent.expiresAt : instant(block.expiresAt);
  if (expiresAt > parent.expiresAt) deny("attenuation_violation", `${path}: expiry expansion`);
  const remainingDepth = narrowDepth(parent, block, path);
  // A store can know that one contract is part of another; without one, a chain serves a single contract.
  if (
    block.contractId !== parent.contractId &&
    walk.subContract(block.contractId, parent.contractId) !== true
  ) {
    deny("contract_mismatch", `${path}.contractId`);
  }
  return {
    signer: block.attenuator,
    delegatee: block.delegatee,
    delegationId: block.delegationId,
    contractId: block.contractId,
    capabilities: block.allowedCapabilities ?? parent.capabilities,
    maxBudgetMicrocents,
    expiresAt,
    chainDepth: parent.chainDepth + 1,
    remainingDepth,
  };
}

/**
 * Depute's choice between DelegateOS 3.4, 8.2 and 10.1, which count differently: hops that remain. Each link costs
 * one, also where a block states nothing; a stated number must be smaller than what remained before.
 */
function narrowDepth(parent: Level, block: Attenuation, path: string): number {
  if (parent.remainingDepth === 0) {
    deny("chain_depth_exceeded", path, { max: parent.chainDepth, actual: parent.chainDepth + 1 });
  }
  const stated = block.maxChainDepth ?? parent.remainingDepth - 1;
  if (stated >= parent.remainingDepth) deny("attenuation_violation", `${path}: depth expansion`);
  return stated;
}

function assertNarrower(
  parents: readonly Capability[],
  children: readonly Capability[],
  path: string,
  { work, readPattern }: Walk,
): void {
  for (const [i, child] of children.entries()) {
    if (!parents.some((parent) => isSubset(child, parent, work, readPattern))) {
      const why = work.left < 0 ? "too complex" : "capability expansion";
      deny("attenuation_violation", `${path}.allowedCapabilities[${i}]: ${why}`);
    }
  }
}

/**
 * Whether one capability allows no more than another (DelegateOS 10.2): the same namespace and action, byte for
 * byte, and a resource pattern that matches a subset. False for a pattern that is not well formed.
 */
export function isSubset(
  child: Capability,
  parent: Capability,
  work: WorkBudget = containmentBudget(),
  readPattern: PatternReader = parsePattern,
): boolean {
  if (child.namespace !== parent.namespace || child.action !== parent.action) return false;
  const [inner, outer] = [patternOf(child, readPattern), patternOf(parent, readPattern)];
  return inner !== undefined && outer !== undefined && contains(outer, inner, work);
}

/** Whether a capability allows an action on one resource. */
export function allows(
  capability: Capability,
  namespace: string,
  action: string,
  resource: Path,
  readPattern: PatternReader = parsePattern,
): boolean {
  if (capability.namespace !== namespace || capability.action !== action) return false;
  const pattern = patternOf(capability, readPattern);
  return pattern !== undefined && matches(pattern, resource);
}

function patternOf({ resource, namespace }: Capability, readPattern: PatternReader): Pattern | undefined {
  const pattern = readPattern(resource, namespace);
  return "problem" in pattern ? undefined : pattern;
}

function instant(text: string): number {
  // Structure was checked before; a text that is no time must not pass for one that never comes.
  return parseTime(text) ?? deny("malformed_token", "not a time");
}

function onlyTheSame(): boolean {
  return false;
}
