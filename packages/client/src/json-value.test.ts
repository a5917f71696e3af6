import { toJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { toValue } from "./json-value.ts";

test.each<[string, unknown, unknown]>([
  ["a member that is undefined is left out", { a: 1, b: undefined, c: { d: undefined } }, { a: 1, c: {} }],
  ["an item that is undefined is null", [1, undefined], [1, null]],
  ["nothing is null", undefined, null],
  ["a number that is none is null", { a: Number.NaN }, { a: null }],
  ["a time is its text", { at: new Date(0) }, { at: "1970-01-01T00:00:00.000Z" }],
  ["what is JSON stays as it is", { a: [true, "x", null, 1.5] }, { a: [true, "x", null, 1.5] }],
])("%s", (_, value, expected) => {
  expect(toJson(ValueSchema, toValue(value))).toEqual(expected);
});
