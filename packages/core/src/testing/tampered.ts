/** JSON whose members tests read without declaring types. */
// biome-ignore lint/suspicious/noExplicitAny: a changed document has no type
type Json = any;

/** One change of a document: the path of the changed member, and the changed text. */
export interface Tampered {
  readonly path: string;
  readonly text: string;
}

/** Returns one changed document for each change of the text: a replaced value, or a removed member or element. */
export function tampered(text: string): Tampered[] {
  const changes: Tampered[] = [];
  const at = (steps: readonly string[]) => {
    const document: Json = JSON.parse(text);
    let holder: Json = document;
    for (const step of steps.slice(0, -1)) holder = holder[step];
    return { document, holder, last: steps.at(-1) ?? "" };
  };
  const walk = (value: Json, steps: readonly string[]): void => {
    if (steps.length > 0) {
      const removed = at(steps);
      if (Array.isArray(removed.holder)) removed.holder.splice(Number(removed.last), 1);
      else delete removed.holder[removed.last];
      changes.push({ path: `without ${steps.join(".")}`, text: JSON.stringify(removed.document) });
    }
    if (typeof value === "object" && value !== null) {
      for (const [name, member] of Object.entries(value)) walk(member, [...steps, name]);
      return;
    }
    const changed = at(steps);
    changed.holder[changed.last] = other(value);
    changes.push({ path: `other ${steps.join(".")}`, text: JSON.stringify(changed.document) });
  };
  walk(JSON.parse(text), []);
  return changes;
}

/** Returns another value of the same type. */
function other(value: unknown): unknown {
  if (typeof value === "boolean") return !value;
  if (typeof value === "number") return value + 1;
  if (typeof value !== "string") return "other";
  const first = value.startsWith("A") ? "B" : "A";
  return `${first}${value.slice(1)}`;
}
