import { expect, test } from "vitest";
import { differencesOf } from "./differences.ts";

test.each([
  ["equal documents", { a: [1, { b: 2 }] }, { a: [1, { b: 2 }] }, []],
  ["a changed member", { a: { b: 1 } }, { a: { b: 2 } }, [{ path: "a.b", before: "1", after: "2" }]],
  ["a new member", {}, { a: "x" }, [{ path: "a", after: "x" }]],
  ["a removed member", { a: "x" }, {}, [{ path: "a", before: "x" }]],
  ["a longer list", { a: [1] }, { a: [1, 2] }, [{ path: "a[1]", after: "2" }]],
  ["another type", { a: [1] }, { a: { 0: 1 } }, [{ path: "a", before: "[1]", after: '{"0":1}' }]],
])("%s", (_, before, after, differences) => {
  expect(differencesOf(before, after)).toEqual(differences);
});

test("the list of differences is bounded", () => {
  const after = Object.fromEntries(Array.from({ length: 2_000 }, (_, i) => [`m${i}`, i]));
  expect(differencesOf({}, after)).toHaveLength(500);
});
