import { toJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { toValue } from "./json-value.ts";

test.each<[string, unknown, unknown]>([
  ["omits an undefined member", { a: 1, b: undefined, c: { d: undefined } }, { a: 1, c: {} }],
  ["turns an undefined item into null", [1, undefined], [1, null]],
  ["turns undefined into null", undefined, null],
  ["turns a number that is not finite into null", { a: Number.NaN }, { a: null }],
  ["turns a date into its text", { at: new Date(0) }, { at: "1970-01-01T00:00:00.000Z" }],
  ["keeps JSON unchanged", { a: [true, "x", null, 1.5] }, { a: [true, "x", null, 1.5] }],
])("%s", (_, value, expected) => {
  expect(toJson(ValueSchema, toValue(value))).toEqual(expected);
});
