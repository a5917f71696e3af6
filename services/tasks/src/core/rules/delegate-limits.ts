/** Bounds of how much work an agent's workers hold together. */
export interface HeldBound {
  /** 0 for no bound. */
  readonly maxHeld: number;
}

/** Whether a bound lets an agent hold more than the one before. Draining is the agent's own and no bound. */
export function widensHeld(before: HeldBound | undefined, after: HeldBound): boolean {
  return most(after) > most(before);
}

function most(bound: HeldBound | undefined): number {
  return bound === undefined || bound.maxHeld === 0 ? Number.POSITIVE_INFINITY : bound.maxHeld;
}
