/** Longest dot path, in characters. */
export const MAX_FIELD_PATH = 256;

const INDEX = /^(0|[1-9]\d{0,8})$/;

/**
 * The value at a dot path such as `report.items.0.name`, or undefined where there is none (DelegateOS 6.2).
 *
 * Only members that the value has itself are followed, never those that every object inherits: `toString` or
 * `__proto__` exist only where the output says so. Of an array only the items count, not its length. A name that
 * holds a dot cannot be addressed.
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

/** The value that a check is about: at `field` when that is given, else the whole output. */
export function subjectOf(output: unknown, field: string | undefined): unknown {
  return field === undefined ? output : valueAt(output, field);
}
