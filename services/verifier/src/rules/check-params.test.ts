import { expect, test } from "vitest";
import { engines } from "../testing/engines.ts";
import { createDefaultRegistry } from "./check-registry.ts";

const registry = createDefaultRegistry(engines);

test.each<[check: string, params: unknown, member: string | undefined]>([
  ["regex_match", { pattern: "a", flags: "i", field: "a.b" }, undefined],
  ["regex_match", undefined, ""],
  ["regex_match", null, ""],
  ["regex_match", [], ""],
  ["regex_match", {}, "pattern"],
  ["regex_match", { pattern: "" }, "pattern"],
  ["regex_match", { pattern: 1 }, "pattern"],
  ["regex_match", { pattern: "a".repeat(1025) }, "pattern"],
  ["regex_match", { pattern: "a", flags: 1 }, "flags"],
  ["regex_match", { pattern: "a", field: "" }, "field"],
  ["regex_match", { pattern: "a", field: "a..b" }, "field"],
  ["regex_match", { pattern: "a", field: "a".repeat(257) }, "field"],
  ["regex_match", { pattern: "a", patern: "b" }, "patern"],
  ["regex_match", JSON.parse('{"pattern":"a","__proto__":1}'), "__proto__"],
  ["regex_match", Object.create({ pattern: "a" }), "pattern"],
  ["json_schema", { schema: {} }, undefined],
  ["json_schema", { schema: false }, undefined],
  ["json_schema", { schema: "x" }, "schema"],
  ["json_schema", { schema: [] }, "schema"],
  ["json_schema", {}, "schema"],
  ["string_length", {}, undefined],
  ["string_length", { min: 0, max: 0 }, undefined],
  ["string_length", { min: -1 }, "min"],
  ["string_length", { min: 1.5 }, "min"],
  ["string_length", { max: Number.NaN }, "max"],
  ["string_length", { max: Number.POSITIVE_INFINITY }, "max"],
  ["string_length", { max: "3" }, "max"],
  ["string_length", { min: 3, max: 2 }, "min"],
  ["array_length", { mni: 3 }, "mni"],
  ["array_length", { min: 1, field: "a" }, undefined],
  ["field_exists", { fields: ["a", "b.c"] }, undefined],
  ["field_exists", { fields: [] }, "fields"],
  ["field_exists", { fields: "a" }, "fields"],
  ["field_exists", { fields: ["a", ""] }, "fields[1]"],
  ["field_exists", { fields: ["a", 1] }, "fields[1]"],
  ["field_exists", { fields: Array(257).fill("a") }, "fields"],
  ["exit_code", { expected: 0 }, undefined],
  ["exit_code", { expected: -1 }, undefined],
  ["exit_code", { expected: "0" }, "expected"],
  ["exit_code", { expected: 0.5 }, "expected"],
  ["exit_code", { expected: 2 ** 31 }, "expected"],
  ["exit_code", {}, "expected"],
  ["output_equals", { expected: null }, undefined],
  ["output_equals", {}, "expected"],
])("%s %j", (check, params, member) => {
  expect(registry.paramsRule(check)(params)?.member).toBe(member);
});
