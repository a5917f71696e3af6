import type { JsonValue } from "@bufbuild/protobuf";
import fc from "fast-check";

/** Generates any JSON value with a few levels of nesting. */
export function anyJson(): fc.Arbitrary<JsonValue> {
  return fc.jsonValue({ maxDepth: 3, stringUnit: "binary" }) as fc.Arbitrary<JsonValue>;
}

/** Generates names of members, including those that JavaScript's objects inherit. */
export function memberName(): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 8, arbitrary: fc.string({ unit: "binary" }) },
    {
      weight: 1,
      arbitrary: fc.constantFrom("", "constructor", "toString", "hasOwnProperty", "a/b~c", "$typeName"),
    },
  );
}
