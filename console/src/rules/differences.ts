/** A member in which two documents differ. */
export interface Difference {
  /** The path of the member, e.g. `skills[0].name`; empty for the whole document. */
  readonly path: string;
  /** The old value as text; absent if the member is new. */
  readonly before?: string;
  /** The new value as text; absent if the member was removed. */
  readonly after?: string;
}

/** Maximum number of differences in the result. Further differences are omitted. */
export const MAX_DIFFERENCES = 500;

/** Returns the members in which two JSON documents differ, in the order of the documents. */
export function differencesOf(before: unknown, after: unknown): Difference[] {
  const differences: Difference[] = [];
  compare("", before, after, differences);
  return differences.slice(0, MAX_DIFFERENCES);
}

function compare(path: string, before: unknown, after: unknown, found: Difference[]): void {
  if (found.length > MAX_DIFFERENCES || before === after) return;
  if (isObject(before) && isObject(after) && Array.isArray(before) === Array.isArray(after)) {
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
    for (const name of names) {
      const inner = Array.isArray(after) ? `${path}[${name}]` : path === "" ? name : `${path}.${name}`;
      compare(inner, before[name], after[name], found);
    }
    return;
  }
  const [old, now] = [textOf(before), textOf(after)];
  if (old === now) return;
  found.push({ path, ...(old !== undefined && { before: old }), ...(now !== undefined && { after: now }) });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : JSON.stringify(value);
}
