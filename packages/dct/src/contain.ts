import { matches, type Pattern } from "./glob.ts";
import { MAX_CONTAINMENT_WORK } from "./limits.ts";

/** What is left to spend on containment checks; shared by all checks of one token. */
export interface WorkBudget {
  left: number;
}

/** A fresh allowance for one token. */
export function containmentBudget(): WorkBudget {
  return { left: MAX_CONTAINMENT_WORK };
}

/**
 * Whether every resource that `child` matches is matched by `parent` too (DelegateOS 10.2): exact, and never a false
 * yes. Depute's choice in place of the text's literal prefix rule, which it contains.
 *
 * Both patterns are automata over segments. The walk follows every state of the child together with the set of
 * states in which the parent may then be; a child that can end where no parent state ends is a counter-example. A
 * segment that neither pattern names is the hardest one for the parent, so a child's wildcard needs to try no other.
 * When the budget runs out the answer is no.
 */
export function contains(parent: Pattern, child: Pattern, budget: WorkBudget = containmentBudget()): boolean {
  if (parent.universal) return true;
  if (child.universal) return false;
  if (parent.leading !== child.leading || parent.trailing !== child.trailing) return false;
  return atSight(parent, child, budget) ?? containsByWalk(parent, child, budget);
}

/**
 * The answers that need no automata, which are most: a child without wildcards is one resource, and a parent that ends
 * in its only wildcard `**` contains what begins as it does.
 */
function atSight(parent: Pattern, child: Pattern, budget: WorkBudget): boolean | undefined {
  const [outer, inner] = [parent.segments, child.segments];
  if (outer.length > MAX_SEGMENTS_AT_SIGHT || inner.length > MAX_SEGMENTS_AT_SIGHT) return undefined;
  if (!inner.some(isWildcard)) {
    // As many steps as the walk would take.
    budget.left -= inner.length + 1;
    return budget.left >= 0 && matches(parent, child);
  }
  const prefix = outer.length - 1;
  if (outer[prefix] !== "**" || outer.findIndex(isWildcard) !== prefix) return undefined;
  budget.left -= inner.length + 1;
  if (budget.left < 0) return false;
  // The first literal of the parent that the child does not share.
  const other = outer.findIndex((segment, i) => i < prefix && segment !== inner[i]);
  if (other < 0) return true;
  // With another literal in its place, what the child matches cannot begin as the parent does.
  const instead = inner[other];
  return instead !== undefined && !isWildcard(instead) ? false : undefined;
}

function isWildcard(segment: string): boolean {
  return segment === "*" || segment === "**";
}

/** The general answer to what contains asks, for two patterns that are not universal and of the same slashes. */
export function containsByWalk(parent: Pattern, child: Pattern, budget: WorkBudget): boolean {
  return walk(new ParentStates(parent.segments), child, budget);
}

/** Longer patterns pay for every step. */
const MAX_SEGMENTS_AT_SIGHT = 31;

interface Step {
  /** How many segments of the child are behind. */
  readonly at: number;
  /** Bit i: the parent may have i segments behind. */
  readonly states: bigint;
  readonly consumed: boolean;
}

function walk(parent: ParentStates, child: Pattern, budget: WorkBudget): boolean {
  // Only "/" has no segments, so where a resource must have one, a walk of no segments is no counter-example.
  const emptyExists = child.leading && !child.trailing;
  const seen = new Set<string>();
  const todo: Step[] = [{ at: 0, states: parent.start, consumed: false }];
  for (let step = todo.pop(); step !== undefined; step = todo.pop()) {
    const { at, states, consumed } = step;
    const key = `${at} ${consumed} ${states}`;
    if (seen.has(key)) continue;
    seen.add(key);
    budget.left -= parent.cost;
    if (budget.left < 0) return false;
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

/** The parent's automaton with its set of states as one integer: a step is a few shifts, whatever the set. */
class ParentStates {
  readonly start: bigint;
  /** What one step costs, in units of the budget: integers grow with the pattern. */
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

  /** The states after one more segment; undefined stands for a segment that no pattern names. */
  step(states: bigint, segment: string | undefined): bigint {
    const literal = segment === undefined ? 0n : (this.#literals.get(segment) ?? 0n);
    return this.#close(((states & (this.#stars | literal)) << 1n) | (states & this.#globstars));
  }

  accepts(states: bigint): boolean {
    return (states & this.#accepting) !== 0n;
  }

  /** `**` may match nothing. Runs of it are one, so one shift closes the set. */
  #close(states: bigint): bigint {
    return states | ((states & this.#globstars) << 1n);
  }
}
