import { DeputeError, reasonName } from "@depute/core";
import { describe, expect, test } from "vitest";
import { contractBody } from "../testing/contracts.ts";
import { engines } from "../testing/engines.ts";
import { createDefaultRegistry } from "./check-registry.ts";
import { validateContract } from "./contract-validation.ts";
import type { TaskContract, VerificationSpec } from "./documents.ts";
import { MAX_SPEC_DEPTH } from "./spec-validation.ts";

const names = { checks: createDefaultRegistry(engines), hasJudge: (model: string) => model === "known" };
const now = Date.UTC(2026, 0, 1);
const V = "contract.verification";

function validate(verification: VerificationSpec, change: Partial<TaskContract> = {}) {
  const contract = { ...contractBody({ verification }), signature: "", ...change };
  try {
    return { found: validateContract(contract, now, names) };
  } catch (error) {
    if (!(error instanceof DeputeError)) throw error;
    return { reason: reasonName(error.reason), field: error.violations[0]?.field };
  }
}

const step: VerificationSpec = { method: "schema_match" };
const exit: VerificationSpec = {
  method: "deterministic_check",
  checkName: "exit_code",
  checkParams: { expected: 0 },
};
const weighted = (weights: number[] | undefined, steps = 2): VerificationSpec => ({
  method: "composite",
  mode: "weighted",
  steps: Array(steps).fill(step),
  ...(weights && { weights }),
});
const nested = (depth: number): VerificationSpec =>
  depth === 1 ? step : { method: "composite", mode: "all_pass", steps: [nested(depth - 1)] };
const wide = (count: number): VerificationSpec => ({
  method: "composite",
  mode: "all_pass",
  steps: Array(count).fill(step),
});

test.each<[what: string, spec: VerificationSpec, field: string, reason?: string]>([
  [
    "a judge without placeholders in its rubric",
    { method: "llm_judge", judgePrompt: "p" },
    `${V}.judge_prompt`,
  ],
  [
    "a judge with an unknown model",
    { method: "llm_judge", judgePrompt: "{output}{contract}", passThreshold: 1, judgeModel: "unknown" },
    `${V}.judge_model`,
  ],
  [
    "a review with invalid judge settings, in a step",
    { method: "composite", mode: "all_pass", steps: [step, { method: "human_review", judgePrompt: "p" }] },
    `${V}.steps.steps[1].judge_prompt`,
  ],
  ["a review without time", { method: "human_review", reviewTimeoutMs: 0 }, `${V}.review_timeout_ms`],
  ["no name of a check", { method: "deterministic_check" }, `${V}.check_name`],
  [
    "an unknown check",
    { method: "deterministic_check", checkName: "nope" },
    `${V}.check_name`,
    "UNKNOWN_CHECK",
  ],
  [
    "a check with the name of an inherited member",
    { method: "deterministic_check", checkName: "toString" },
    `${V}.check_name`,
    "UNKNOWN_CHECK",
  ],
  ["no params", { method: "deterministic_check", checkName: "exit_code" }, `${V}.check_params`],
  [
    "bad params",
    { method: "deterministic_check", checkName: "exit_code", checkParams: { expected: "0" } },
    `${V}.check_params.expected`,
  ],
  ["an expected result that no check gives", { ...exit, expectedResult: true }, `${V}.expected_result`],
  ["an expected result without a verdict", { ...exit, expectedResult: {} }, `${V}.expected_result.passed`],
  [
    "an expected result with an unknown member",
    { ...exit, expectedResult: { passed: true, why: "" } },
    `${V}.expected_result.why`,
  ],
  [
    "an expected score over 1",
    { ...exit, expectedResult: { passed: true, score: 2 } },
    `${V}.expected_result.score`,
  ],
  ["no steps", { method: "composite", mode: "majority", steps: [] }, `${V}.steps`],
  ["absent steps", { method: "composite", mode: "majority" }, `${V}.steps`],
  ["no mode", { method: "composite", steps: [step] }, `${V}.mode`],
  ["no weights", weighted(undefined), `${V}.weights.weights`],
  ["too few weights", weighted([1]), `${V}.weights.weights`],
  ["too many weights", weighted([0.5, 0.25, 0.25]), `${V}.weights.weights`],
  ["weights that add up to less", weighted([0.5, 0.498]), `${V}.weights.weights`],
  ["weights that add up to more", weighted([0.5, 0.502]), `${V}.weights.weights`],
  ["a negative weight", weighted([1.5, -0.5]), `${V}.weights.weights[0]`],
  ["a weight that is not a number", weighted([Number.NaN, 1]), `${V}.weights.weights[0]`],
  ["an infinite weight", weighted([1, Number.POSITIVE_INFINITY]), `${V}.weights.weights[1]`],
  ["a threshold over 1", { ...weighted([0.5, 0.5]), passThreshold: 1.1 }, `${V}.pass_threshold`],
  [
    "a threshold that is not a number",
    { ...weighted([0.5, 0.5]), passThreshold: Number.NaN },
    `${V}.pass_threshold`,
  ],
  ["too deep", nested(MAX_SPEC_DEPTH + 1), `${V}${".steps.steps[0]".repeat(MAX_SPEC_DEPTH)}`],
  [
    "too many",
    { method: "composite", mode: "all_pass", steps: Array(9).fill(wide(31)) },
    `${V}.steps.steps[7].steps.steps[30]`,
  ],
])("refuses: %s", (_, spec, field, reason = "INVALID_REQUEST") => {
  const answer = validate(spec);
  expect(answer.reason).toBe(reason);
  expect(answer.field).toBe(field);
});

describe("accepted", () => {
  test.each<[what: string, spec: VerificationSpec]>([
    ["schema_match", step],
    ["a check that has to fail", { ...exit, expectedResult: { passed: false } }],
    ["weights that are 0.001 off", weighted([0.5, 0.499])],
    ["weights that are 0.001 over", weighted([0.5, 0.501])],
    ["as deep as may be", nested(MAX_SPEC_DEPTH)],
  ])("%s", (_, spec) => {
    expect(validate(spec).found?.[0]).toMatchObject({ field: "contract.task.output_schema" });
  });

  test("returns each schema and pattern with its field", () => {
    const spec: VerificationSpec = {
      method: "composite",
      mode: "all_pass",
      steps: [
        { method: "schema_match", schema: { type: "string" } },
        { method: "deterministic_check", checkName: "json_schema", checkParams: { schema: false } },
        {
          method: "deterministic_check",
          checkName: "regex_match",
          checkParams: { pattern: "a", flags: "i" },
        },
      ],
    };
    expect(validate(spec).found?.slice(1)).toEqual([
      { field: `${V}.steps.steps[0].schema`, schema: { type: "string" } },
      { field: `${V}.steps.steps[1].check_params.schema`, schema: false },
      { field: `${V}.steps.steps[2].check_params.pattern`, pattern: { pattern: "a", flags: "i" } },
    ]);
  });
});

test.each<[what: string, change: Partial<TaskContract>, field: string]>([
  ["made in the future", { createdAt: "2026-01-01T00:05:01Z" }, "contract.created_at"],
  ["made on 30 February", { createdAt: "2025-02-30T00:00:00Z" }, "contract.created_at"],
  [
    "a deadline before the creation",
    {
      createdAt: "2025-06-01T00:00:00Z",
      constraints: { ...contractBody().constraints, deadline: "2025-05-01T00:00:00Z" },
    },
    "contract.constraints.deadline",
  ],
])("refuses: %s", (_, change, field) => {
  expect(validate(step, change)).toEqual({ reason: "INVALID_REQUEST", field });
});
