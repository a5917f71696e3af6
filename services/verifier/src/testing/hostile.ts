/** Schemas that are small and take very long; see what each says. */

/** Validating doubles with every level: some 20 levels take half a second, these would take days. 2 KB. */
export function doublingSchema(levels = 40): Record<string, unknown> {
  const definitions: Record<string, unknown> = { d0: { type: "number" } };
  for (let i = 1; i <= levels; i++) {
    const below = { $ref: `#/definitions/d${i - 1}` };
    definitions[`d${i}`] = { anyOf: [below, below] };
  }
  return { $ref: `#/definitions/d${levels}`, definitions };
}

/** A value that this schema is slow on. */
export const SLOW_VALUE = "not a number";
