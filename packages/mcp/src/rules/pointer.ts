/**
 * Returns the value at a JSON pointer (RFC 6901). Only own members count, so `/constructor` does not return an
 * inherited member.
 *
 * @returns undefined if there is no value at the pointer
 */
export function pointAt(value: unknown, pointer: string): unknown {
  if (pointer === "") return value;
  let at = value;
  for (const part of pointer.slice(1).split("/")) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, name)) return undefined;
    at = (at as Record<string, unknown>)[name];
  }
  return at;
}

/** Whether a text is a JSON pointer (RFC 6901). */
export function isPointer(text: string): boolean {
  return text === "" || (text.startsWith("/") && !/~(?![01])/.test(text));
}
