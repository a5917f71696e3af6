import { expect, it } from "vitest";
import { isObject } from "./json-object.ts";

it.each([
  [{}, true],
  [{ a: 1 }, true],
  [Object.create(null), true],
  [null, false],
  [[], false],
  ["{}", false],
  [undefined, false],
])("isObject(%j) is %j", (value, expected) => {
  expect(isObject(value)).toBe(expected);
});
