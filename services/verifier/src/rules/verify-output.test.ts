import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { engines } from "../testing/engines.ts";
import { createDefaultRegistry } from "./check-registry.ts";
import { CheckNotRun, type CheckResult } from "./check-result.ts";
import { compositeResult } from "./composite.ts";
import type { VerificationSpec } from "./documents.ts";
import { verifyOutput } from "./verify-output.ts";

const registry = createDefaultRegistry(engines);
registry.register("half", () => ({ passed: false, score: 0.5 }));
registry.register("breaks", () => {
  throw new CheckNotRun("no");
});
const verify = (verification: VerificationSpec, output: unknown, outputSchema: unknown = true) =>
  verifyOutput({ verification, outputSchema }, output, registry, engines);
const check = (checkName: string, checkParams?: unknown, expectedResult?: unknown): VerificationSpec => ({
  method: "deterministic_check",
  checkName,
  checkParams,
  expectedResult,
});
const matches = (pattern: string) => check("regex_match", { pattern });
const yes = matches("a");
const no = matches("z");

describe("schema_match", () => {
  test("uses its own schema", () => {
    expect(verify({ method: "schema_match", schema: { type: "number" } }, 1, { type: "string" })).toEqual({
      passed: true,
      score: 1,
    });
  });
  test("uses the contract's output schema if it has none", () => {
    expect(verify({ method: "schema_match" }, "x", { type: "number" })).toEqual({
      passed: false,
      score: 0,
      details: "data must be number",
    });
  });
  test("accepts false as its own schema", () => {
    expect(verify({ method: "schema_match", schema: false }, 1, true).passed).toBe(false);
  });
});

describe("expectedResult is compared with the whole result", () => {
  test.each<[result: unknown, passed: boolean]>([
    [{ passed: false, score: 0 }, true],
    [{ score: 0, passed: false }, true],
    [{ passed: false }, false],
    [{ passed: true, score: 1 }, false],
    [{ passed: false, score: 0, details: "x" }, false],
    [false, false],
    [null, false],
  ])("%j", (expected, passed) => {
    expect(verify(check("regex_match", { pattern: "z" }, expected), "a").passed).toBe(passed);
  });
  test("a result without a score gets none", () => {
    expect(verify(check("string_length", { min: 5 }, { passed: false }), "abc").passed).toBe(true);
  });
});

describe("a check that cannot run has not passed", () => {
  test.each<[what: string, spec: VerificationSpec]>([
    ["unknown check", check("nope", {})],
    ["unknown check that is expected to fail", check("nope", {}, { passed: false, score: 0 })],
    ["check that breaks", check("breaks", {}, { passed: false, score: 0 })],
    ["no name", { method: "deterministic_check" }],
    ["params that it cannot use", check("string_length", { min: "1" }, { passed: false })],
    ["no steps", { method: "composite", mode: "majority", steps: [] }],
    ["absent steps", { method: "composite", mode: "all_pass" }],
    ["no mode", { method: "composite", steps: [yes] }],
    ["too few weights", { method: "composite", mode: "weighted", steps: [yes, yes], weights: [1] }],
    [
      "a weight that is not a number",
      { method: "composite", mode: "weighted", steps: [yes], weights: [Number.NaN] },
    ],
    ["a schema without end", { method: "schema_match", schema: { $ref: "#" } }],
    ["llm_judge", { method: "llm_judge", judgePrompt: "", passThreshold: 0 }],
    ["human_review", { method: "human_review" }],
  ])("%s", (_, spec) => {
    expect(verify(spec, "a")).toMatchObject({ passed: false, score: 0, details: expect.any(String) });
  });
});

describe("composite", () => {
  const composite = (
    mode: "all_pass" | "majority" | "weighted",
    steps: VerificationSpec[],
    more: object = {},
  ) => verify({ method: "composite", mode, steps, ...more }, "a");
  test.each<[what: string, result: CheckResult, passed: boolean, score: number]>([
    ["all_pass, all", composite("all_pass", [yes, yes]), true, 1],
    ["all_pass, one not", composite("all_pass", [yes, no]), false, 0],
    ["majority, two of three", composite("majority", [yes, no, yes]), true, 2 / 3],
    ["majority, half is not more than half", composite("majority", [yes, no]), false, 0.5],
    ["weighted, default threshold met", composite("weighted", [yes, no], { weights: [0.7, 0.3] }), true, 0.7],
    [
      "weighted, default threshold missed",
      composite("weighted", [yes, no], { weights: [0.69, 0.31] }),
      false,
      0.69,
    ],
    [
      "weighted, own threshold",
      composite("weighted", [yes, no], { weights: [0.5, 0.5], passThreshold: 0.5 }),
      true,
      0.5,
    ],
    ["weighted, threshold 0", composite("weighted", [no], { weights: [1], passThreshold: 0 }), true, 0],
    [
      "weighted, a partial score",
      composite("weighted", [check("half"), yes], { weights: [0.5, 0.5] }),
      true,
      0.75,
    ],
    [
      "weighted, ten tenths reach 1",
      composite("weighted", Array(10).fill(yes), { weights: Array(10).fill(0.1), passThreshold: 1 }),
      true,
      1,
    ],
    [
      "nested",
      composite("all_pass", [{ method: "composite", mode: "majority", steps: [yes, yes, no] }]),
      true,
      1,
    ],
  ])("%s", (_, result, passed, score) => {
    expect(result.passed).toBe(passed);
    expect(result.score).toBeCloseTo(score, 12);
  });

  test("all_pass stops at the first failure and reports it", () => {
    const run: number[] = [];
    const steps = [yes, no, no];
    const result = compositeResult({ method: "composite", mode: "all_pass", steps }, (step) => {
      run.push(steps.indexOf(step));
      return { passed: step === yes, details: "because" };
    });
    expect(run).toEqual([0, 1]);
    expect(result).toEqual({ passed: false, score: 0, details: "Step 1 failed: because" });
  });

  const outcomes = fc.array(fc.boolean(), { minLength: 1, maxLength: 12 });
  test("the other modes run every step and follow their definitions", () => {
    fc.assert(
      fc.property(outcomes, (passes) => {
        const steps = passes.map(() => yes);
        const weights = passes.map(() => 1 / passes.length);
        const judge = (mode: "all_pass" | "majority" | "weighted") => {
          let ran = 0;
          const spec = { method: "composite", mode, steps, weights } as const;
          const result = compositeResult({ ...spec, steps: [...steps], weights: [...weights] }, () => ({
            passed: passes[ran++] === true,
          }));
          return { passed: result.passed, ran };
        };
        const count = passes.filter(Boolean).length;
        expect(judge("all_pass").passed).toBe(count === passes.length);
        expect(judge("majority")).toEqual({ passed: count * 2 > passes.length, ran: passes.length });
        expect(judge("weighted")).toEqual({
          passed: count / passes.length >= 0.7 - 1e-9,
          ran: passes.length,
        });
      }),
    );
  });
  test("the order of weighted steps does not matter", () => {
    const part = fc.tuple(fc.boolean(), fc.integer({ min: 1, max: 100 }));
    fc.assert(
      fc.property(fc.array(part, { minLength: 1, maxLength: 8 }), (parts) => {
        const total = parts.reduce((sum, [, weight]) => sum + weight, 0);
        const judge = (list: typeof parts) =>
          compositeResult(
            {
              method: "composite",
              mode: "weighted",
              steps: list.map(([pass]) => (pass ? yes : no)),
              weights: list.map(([, w]) => w / total),
            },
            (step) => ({ passed: step === yes }),
          );
        expect(judge(parts.toReversed()).score).toBeCloseTo(judge(parts).score ?? -1, 9);
      }),
    );
  });
});
