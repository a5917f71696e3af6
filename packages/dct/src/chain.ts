import { deny } from "./denial.ts";
import { matches, type Path, type Pattern, type PatternReader, parsePattern } from "./glob.ts";
import { MAX_CONTAINMENT_WORK } from "./limits.ts";
import { parseTime } from "./time.ts";
import type { Attenuation, Authority, Capability, SignedJSONToken } from "./types.ts";

/**
 * The number of steps that containment checks may still take. All checks of one token share this number, so that a
 * hostile token costs a bounded time.
 */
export interface WorkBudget {
  remainingSteps: number;
}

/** Returns a new budget for the checks of one token's patterns. */
export function containmentBudget(): WorkBudget {
  return { remainingSteps: MAX_CONTAINMENT_WORK };
}

/**
 * Whether `parent` matches every resource that `child` matches (DelegateOS 10.2). Depute's choice: this exact
 * check replaces the specification's literal prefix rule, and includes it. Both patterns are automata over
 * segments. The walk visits every state of the child, together with the set of states that the parent may be
 * in. A state where the child can end and the parent cannot is a counter-example. For a wildcard of the child,
 * the walk tries only one segment: a segment that neither pattern contains. If the parent matches this segment,
 * the parent matches every other segment too. If the budget is exhausted, the result is false.
 */
export function contains(parent: Pattern, child: Pattern, budget: WorkBudget = containmentBudget()): boolean {
  if (parent.universal) return true;
  if (child.universal) return false;
  if (parent.leading !== child.leading || parent.trailing !== child.trailing) return false;
  return atSight(parent, child, budget) ?? containsByWalk(parent, child, budget);
}

/**
 * Decides two common cases without automata, and returns undefined for all other patterns. First, a child without
 * wildcards is a single resource. Second, a parent whose only wildcard is a final `**` contains every pattern that
 * begins with its literals.
 */
function atSight(parent: Pattern, child: Pattern, budget: WorkBudget): boolean | undefined {
  const [outer, inner] = [parent.segments, child.segments];
  if (outer.length > MAX_SEGMENTS_AT_SIGHT || inner.length > MAX_SEGMENTS_AT_SIGHT) return undefined;
  if (!inner.some(isWildcard)) {
    // This path subtracts as many steps from the budget as the walk would. So both have the same result.
    budget.remainingSteps -= inner.length + 1;
    return budget.remainingSteps >= 0 && matches(parent, child);
  }
  const prefix = outer.length - 1;
  if (outer[prefix] !== "**" || outer.findIndex(isWildcard) !== prefix) return undefined;
  budget.remainingSteps -= inner.length + 1;
  if (budget.remainingSteps < 0) return false;
  // The first position at which the parent's literal differs from the child's segment; -1 if there is none.
  const other = outer.findIndex((segment, i) => i < prefix && segment !== inner[i]);
  if (other < 0) return true;
  // If the child has another literal at this position, the parent does not contain the child. If the child has a
  // wildcard there, or ends before, only the walk can answer.
  const instead = inner[other];
  return instead !== undefined && !isWildcard(instead) ? false : undefined;
}

function isWildcard(segment: string): boolean {
  return segment === "*" || segment === "**";
}

/**
 * Decides `contains` for the general case, which the quick checks of `contains` leave open. Neither pattern
 * may be universal, and both must agree on the leading and the trailing slash.
 */
export function containsByWalk(parent: Pattern, child: Pattern, budget: WorkBudget): boolean {
  return walk(new ParentStates(parent.segments), child, budget);
}

/** Maximum number of segments in a pattern that `atSight` accepts. Longer patterns need the walk. */
const MAX_SEGMENTS_AT_SIGHT = 31;

interface Step {
  /** Number of the child's segments that the walk has passed. */
  readonly at: number;
  /** Bit i is set if the segments so far may match the parent's first i segments. */
  readonly states: bigint;
  readonly consumed: boolean;
}

function walk(parent: ParentStates, child: Pattern, budget: WorkBudget): boolean {
  // The only resource without segments is "/". Every other resource has a segment, so a match without segments is not
  // a counter-example.
  const emptyExists = child.leading && !child.trailing;
  const seen = new Set<string>();
  const todo: Step[] = [{ at: 0, states: parent.start, consumed: false }];
  for (let step = todo.pop(); step !== undefined; step = todo.pop()) {
    const { at, states, consumed } = step;
    const key = `${at} ${consumed} ${states}`;
    if (seen.has(key)) continue;
    seen.add(key);
    budget.remainingSteps -= parent.cost;
    if (budget.remainingSteps < 0) return false;
    const segment = child.segments[at];
    if (segment === undefined) {
      if ((consumed || emptyExists) && !parent.accepts(states)) return false;
    } else if (segment === "**") {
      todo.push({ at: at + 1, states, consumed });
      todo.push({ at, states: parent.step(states, undefined), consumed: true });
    } else {
      const literal = segment === "*" ? undefined : segment;
      todo.push({ at: at + 1, states: parent.step(states, literal), consumed: true });
    }
  }
  return true;
}

/**
 * The states of the parent's automaton. A set of states is one integer, so that a step takes a few shifts for any set.
 */
class ParentStates {
  readonly start: bigint;
  /**
   * The cost of one step, in units of the work budget. A longer pattern needs longer integers, so its steps cost more.
   */
  readonly cost: number;
  readonly #accepting: bigint;
  readonly #stars: bigint;
  readonly #globstars: bigint;
  readonly #literals = new Map<string, bigint>();

  constructor(segments: readonly string[]) {
    let stars = 0n;
    let globstars = 0n;
    for (const [i, segment] of segments.entries()) {
      const bit = 1n << BigInt(i);
      if (segment === "*") stars |= bit;
      else if (segment === "**") globstars |= bit;
      else this.#literals.set(segment, (this.#literals.get(segment) ?? 0n) | bit);
    }
    this.#stars = stars;
    this.#globstars = globstars;
    this.#accepting = 1n << BigInt(segments.length);
    this.start = this.#close(1n);
    this.cost = 1 + (segments.length >> 5);
  }

  /**
   * Returns the states after one more segment. `segment` is undefined for a segment that neither pattern contains as
   * a literal.
   */
  step(states: bigint, segment: string | undefined): bigint {
    const literal = segment === undefined ? 0n : (this.#literals.get(segment) ?? 0n);
    return this.#close(((states & (this.#stars | literal)) << 1n) | (states & this.#globstars));
  }

  accepts(states: bigint): boolean {
    return (states & this.#accepting) !== 0n;
  }

  /**
   * Adds the states that are reachable without a segment, because `**` may match no segment. One shift is enough,
   * because adjacent `**` are merged.
   */
  #close(states: bigint): bigint {
    return states | ((states & this.#globstars) << 1n);
  }
}

/** The limits and capabilities after one block of a chain. */
export interface Level {
  /** The signer of the block: the issuer, or the attenuator. */
  readonly signer: string;
  readonly delegatee: string;
  readonly delegationId: string;
  readonly contractId: string;
  readonly capabilities: readonly Capability[];
  readonly maxBudgetMicrocents: number;
  /** The expiry, in milliseconds since 1970. */
  readonly expiresAt: number;
  /** Number of delegations above this block; 0 at a root. */
  readonly chainDepth: number;
  /** Number of further delegations that are allowed below this block. */
  readonly remainingDepth: number;
}

/** Whether a contract is a recorded sub-contract of another. */
export type SubContractRule = (child: string, parent: string) => boolean;

/**
 * Walks a chain from its authority block down (DelegateOS 10.1 step 4), and returns the grants after each block.
 * Throws TokenError at the first block that grants more than the previous block, is not by the previous delegatee,
 * names a contract that is no sub-contract, or states no valid expiry.
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

/** The inputs of a walk down one chain. */
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
  // Only a store knows whether a contract is a sub-contract of another. Without a store, all blocks of a chain must
  // name the same contract.
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
 * Returns the number of further delegations that are allowed below a block. DelegateOS 3.4, 8.2 and 10.1 count
 * differently; this count is Depute's choice. Each block reduces the number by at least one. A block that states no
 * number reduces it by exactly one.
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
      const why = work.remainingSteps < 0 ? "too complex" : "capability expansion";
      deny("attenuation_violation", `${path}.allowedCapabilities[${i}]: ${why}`);
    }
  }
}

/**
 * Whether one capability is contained in another (DelegateOS 10.2). Namespace and action must be equal byte for
 * byte, and the parent's resource pattern must match every resource of the child's. False for a malformed pattern,
 * and if the work budget is exhausted.
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
  // The structure check does not parse times. An invalid time must be refused here, because a comparison with it would
  // never find the token expired.
  return parseTime(text) ?? deny("malformed_token", "not a time");
}

function onlyTheSame(): boolean {
  return false;
}
