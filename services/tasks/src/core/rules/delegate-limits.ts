/** Limits how many tasks an agent's workers hold together. */
export interface HeldBound {
  /** Maximum number of held tasks; 0 for no limit. */
  readonly maxHeld: number;
}

/**
 * Whether a bound lets an agent hold more tasks than the previous bound did. A pause of dispatch is not a bound,
 * because the agent itself decides on it.
 */
export function widensHeld(before: HeldBound | undefined, after: HeldBound): boolean {
  return most(after) > most(before);
}

function most(bound: HeldBound | undefined): number {
  return bound === undefined || bound.maxHeld === 0 ? Number.POSITIVE_INFINITY : bound.maxHeld;
}
