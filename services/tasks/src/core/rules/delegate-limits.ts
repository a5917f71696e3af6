/** Limits how many tasks an agent's workers hold together. */
export interface HeldBound {
  /** Maximum number of held tasks; 0 for no limit. */
  readonly maxHeld: number;
}

/**
 * Whether a bound lets an agent hold more than the previous bound did. Pausing dispatch is the agent's own choice and
 * not a bound.
 */
export function widensHeld(before: HeldBound | undefined, after: HeldBound): boolean {
  return most(after) > most(before);
}

function most(bound: HeldBound | undefined): number {
  return bound === undefined || bound.maxHeld === 0 ? Number.POSITIVE_INFINITY : bound.maxHeld;
}
