import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import fc from "fast-check";
import { anyJson, memberName } from "./json-arbitraries.ts";

type Container = JsonObject | JsonValue[];

/** Values that are invalid in most members but valid in a few. */
const NEAR: readonly JsonValue[] = [
  null,
  true,
  "",
  "x",
  "other",
  "none",
  0,
  -1,
  0.5,
  1,
  2,
  1e16,
  2 ** 53,
  "y".repeat(129),
  "z".repeat(4001),
  [],
  {},
];

/**
 * Generates documents that differ from a document in one place: a member or item is removed, added, repeated or
 * replaced.
 */
export function mutationsOf(document: JsonValue): fc.Arbitrary<JsonValue> {
  const places = containersOf(document);
  return fc
    .record({
      place: fc.nat(places.length - 1),
      which: fc.nat(),
      change: fc.constantFrom("remove", "add", "repeat", "replace", "replace"),
      name: memberName(),
      value: fc.oneof(fc.constantFrom(...NEAR), anyJson()),
    })
    .map(({ place, which, change, name, value }) => {
      const copy = structuredClone(document);
      mutate(containersOf(copy)[place] as Container, which, change, name, value);
      return copy;
    });
}

function mutate(container: Container, which: number, change: string, name: string, value: JsonValue): void {
  if (Array.isArray(container)) {
    const at = container.length === 0 ? 0 : which % container.length;
    if (change === "add" || container.length === 0) container.splice(at, 0, value);
    else if (change === "repeat") container.push(container[at] as JsonValue);
    else container.splice(at, 1, ...(change === "remove" ? [] : [value]));
    return;
  }
  const names = Object.keys(container);
  const at = names[which % Math.max(names.length, 1)] ?? name;
  if (change === "remove") delete container[at];
  else container[change === "add" ? name : at] = value;
}

/** Returns the objects and arrays in a document, beginning with the document itself, always in the same order. */
function containersOf(value: JsonValue): Container[] {
  if (typeof value !== "object" || value === null) return [];
  const inner = Array.isArray(value) ? value : Object.values(value);
  return [value, ...inner.flatMap(containersOf)];
}
