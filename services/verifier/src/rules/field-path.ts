/** Maximum length of a dot path in characters. */
export const MAX_FIELD_PATH = 256;

const INDEX = /^(0|[1-9]\d{0,8})$/;

/**
 * Returns the value at a dot path such as `report.items.0.name`; undefined if no value has this path (DelegateOS 6.2).
 * A path leads only to own members, never to inherited members such as `toString` or `__proto__`. Arrays have items but
 * no `length`. No path reaches a member with a dot in its name.
 */
export function valueAt(value: unknown, path: string): unknown {
  let at = value;
  for (const name of path.split(".")) {
    if (typeof at !== "object" || at === null) return undefined;
    if (Array.isArray(at) && !INDEX.test(name)) return undefined;
    at = Object.getOwnPropertyDescriptor(at, name)?.value;
  }
  return at;
}

/** Returns the value that a check examines: the value at `field`, or the whole output without `field`. */
export function subjectOf(output: unknown, field: string | undefined): unknown {
  return field === undefined ? output : valueAt(output, field);
}
