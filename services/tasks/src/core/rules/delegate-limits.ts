/** The bound on the number of tasks that all workers of an agent together hold. */
export interface HeldBound {
  /** Maximum number of held tasks; 0 for no limit. */
  readonly maxHeld: number;
}

/**
 * Whether a bound permits more held tasks than the previous bound. Only a caller that BoundsOperators.mayWiden allows
 * may widen a bound. `draining` does not count, because the agent may change `draining` itself.
 */
export function widensHeld(before: HeldBound | undefined, after: HeldBound): boolean {
  return most(after) > most(before);
}

function most(bound: HeldBound | undefined): number {
  return bound === undefined || bound.maxHeld === 0 ? Number.POSITIVE_INFINITY : bound.maxHeld;
}
