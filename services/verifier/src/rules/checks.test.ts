import { DeputeError } from "@depute/core";
import { describe, expect, test } from "vitest";
import { engines } from "../testing/engines.ts";
import { CheckFunctionRegistry, createDefaultRegistry } from "./check-registry.ts";
import { CheckNotRun, type CheckResult } from "./check-result.ts";
import { valueAt } from "./field-path.ts";

const registry = createDefaultRegistry(engines);
const pass: CheckResult = { passed: true };
const fail: CheckResult = { passed: false };
const score1: CheckResult = { passed: true, score: 1 };
const score0: CheckResult = { passed: false, score: 0 };
const object = { a: { b: ["x", { c: "deep" }] }, n: null, s: "text", list: [1, 2, 3] };
// JSON.parse creates `__proto__` as an own member.
const hostile: unknown = JSON.parse('{"__proto__":{"polluted":"yes"},"toString":"own"}');

describe.each<[check: string, cases: [output: unknown, params: unknown, result: CheckResult][]]>([
  [
    "regex_match",
    [
      ["hello world", { pattern: "o w" }, score1],
      ["hello world", { pattern: "^w" }, score0],
      ["Hello", { pattern: "hello", flags: "i" }, score1],
      ["Hello", { pattern: "hello", flags: "" }, score0],
      [object, { pattern: "^deep$", field: "a.b.1.c" }, score1],
      [object, { pattern: "text", field: "missing" }, score0],
      [object, { pattern: "undefined", field: "missing" }, score0],
      [object, { pattern: "null", field: "n" }, score0],
      [object, { pattern: "object" }, score0],
      [42, { pattern: "42" }, score0],
      [["a"], { pattern: "a" }, score0],
      ["", { pattern: "^$" }, score1],
    ],
  ],
  [
    "json_schema",
    [
      [{ a: 1 }, { schema: { type: "object", required: ["a"] } }, score1],
      [
        {},
        { schema: { type: "object", required: ["a"] } },
        { ...score0, details: "data must have required property 'a'" },
      ],
      ["x", { schema: true }, score1],
      ["x", { schema: false }, { ...score0, details: "data boolean schema is false" }],
      [null, { schema: { type: ["string", "null"] } }, score1],
    ],
  ],
  [
    "string_length",
    [
      ["abc", { min: 3, max: 3 }, pass],
      ["abc", { min: 4 }, fail],
      ["abc", { max: 2 }, fail],
      ["", { min: 0 }, pass],
      ["abc", {}, pass],
      [object, { min: 4, max: 4, field: "s" }, pass],
      [object, { min: 0, field: "missing" }, fail],
      [object, { min: 0, field: "list" }, fail],
      [12345, { max: 10 }, fail],
      [["a", "b"], { min: 2 }, fail],
      ["😀", { min: 2, max: 2 }, pass],
    ],
  ],
  [
    "array_length",
    [
      [[1, 2], { min: 2, max: 2 }, pass],
      [[1, 2], { min: 3 }, fail],
      [[1, 2], { max: 1 }, fail],
      [[], { max: 0 }, pass],
      [object, { min: 3, field: "list" }, pass],
      ["abc", { min: 1 }, fail],
      [{ length: 3 }, { min: 1 }, fail],
    ],
  ],
  [
    "field_exists",
    [
      [object, { fields: ["a.b", "s"] }, pass],
      [object, { fields: ["n"] }, pass],
      [object, { fields: ["a.b.0"] }, pass],
      [object, { fields: ["s", "missing"] }, fail],
      [object, { fields: ["a.b.length"] }, fail],
      [object, { fields: ["toString"] }, fail],
      [object, { fields: ["__proto__"] }, fail],
      [object, { fields: ["constructor.name"] }, fail],
      [object, { fields: ["s.length"] }, fail],
      [hostile, { fields: ["__proto__.polluted", "toString"] }, pass],
      [hostile, { fields: ["polluted"] }, fail],
      [null, { fields: ["a"] }, fail],
      [[{ x: 1 }], { fields: ["0.x"] }, pass],
      [[{ x: 1 }], { fields: ["00.x"] }, fail],
    ],
  ],
  [
    "exit_code",
    [
      [{ exitCode: 0 }, { expected: 0 }, pass],
      [{ exitCode: -0 }, { expected: 0 }, pass],
      [{ exitCode: 1 }, { expected: 0 }, fail],
      [{ exitCode: "0" }, { expected: 0 }, fail],
      [{}, { expected: 0 }, fail],
      [0, { expected: 0 }, fail],
      [null, { expected: 0 }, fail],
      [Object.create({ exitCode: 0 }), { expected: 0 }, fail],
    ],
  ],
  [
    "output_equals",
    [
      [{ a: 1, b: [true, null] }, { expected: { b: [true, null], a: 1.0 } }, pass],
      [{ a: 1 }, { expected: { a: 1, b: 2 } }, fail],
      [[1, 2], { expected: [2, 1] }, fail],
      [null, { expected: null }, pass],
      ["1", { expected: 1 }, fail],
      [-0, { expected: 0 }, pass],
      [hostile, { expected: hostile }, pass],
      [hostile, { expected: { toString: "own" } }, fail],
    ],
  ],
])("%s", (name, cases) => {
  test.each(cases)("%j under %j", (output, params, result) => {
    expect(registry.get(name)(output, params)).toEqual(result);
  });
});

test("refuses to compare values without a canonical form", () => {
  expect(() => registry.get("output_equals")(Number.NaN, { expected: Number.NaN })).toThrow(CheckNotRun);
  expect(() => registry.get("output_equals")("\ud800", { expected: "\ud800" })).toThrow(CheckNotRun);
});

test("has the seven checks, accepts more, and throws for an unknown name", () => {
  expect(registry.list()).toEqual([
    "regex_match",
    "json_schema",
    "string_length",
    "array_length",
    "field_exists",
    "exit_code",
    "output_equals",
  ]);
  const ownRegistry = new CheckFunctionRegistry();
  ownRegistry.register("always", () => ({ passed: true }));
  expect(ownRegistry.get("always")(1)).toEqual(pass);
  expect(() => ownRegistry.register("always", () => fail)).toThrow(/always/);
  for (const name of ["nope", "toString", "__proto__", ""]) {
    expect(() => registry.get(name)).toThrow(DeputeError);
  }
});

test.each<[path: string, value: unknown]>([
  ["a.b.1.c", "deep"],
  ["a", object.a],
  ["a.b.2", undefined],
  ["a.b.-1", undefined],
  ["a..b", undefined],
  ["", undefined],
  ["hasOwnProperty", undefined],
  ["n.x", undefined],
  ["s.0", undefined],
])("valueAt(%s)", (path, value) => {
  expect(valueAt(object, path)).toEqual(value);
});
