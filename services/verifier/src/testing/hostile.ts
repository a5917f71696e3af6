/** Small schemas whose validation takes very long. */

/** A schema of 2 KB whose validation time doubles with every level: half a second for 20 levels, days for 40. */
export function doublingSchema(levels = 40): Record<string, unknown> {
  const definitions: Record<string, unknown> = { d0: { type: "number" } };
  for (let i = 1; i <= levels; i++) {
    const below = { $ref: `#/definitions/d${i - 1}` };
    definitions[`d${i}`] = { anyOf: [below, below] };
  }
  return { $ref: `#/definitions/d${levels}`, definitions };
}

/** A value whose validation by doublingSchema takes the full time. */
export const SLOW_VALUE = "not a number";
