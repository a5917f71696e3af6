import type { JsonValue } from "@bufbuild/protobuf";
import fc from "fast-check";

/** Any JSON value, nested a few levels. */
export function anyJson(): fc.Arbitrary<JsonValue> {
  return fc.jsonValue({ maxDepth: 3, stringUnit: "binary" }) as fc.Arbitrary<JsonValue>;
}

/** Names of members, those that JavaScript's objects have of their own among them. */
export function memberName(): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 8, arbitrary: fc.string({ unit: "binary" }) },
    {
      weight: 1,
      arbitrary: fc.constantFrom("", "constructor", "toString", "hasOwnProperty", "a/b~c", "$typeName"),
    },
  );
}
