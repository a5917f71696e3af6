import { DeputeError, ErrorReason, invalid } from "@depute/core";
import { expectedResultParams, type ParamsFault } from "./check-params.ts";
import type { CheckFunctionRegistry } from "./check-registry.ts";
import type { VerificationSpec } from "./documents.ts";
import { DEFAULT_JUDGE_MODEL, judgeFault } from "./judge.ts";

/** Maximum nesting of composites. The contract's own verification is level 1. */
export const MAX_SPEC_DEPTH = 8;
/** Maximum number of verifications in one contract. Each composite and each step counts. */
export const MAX_SPEC_STEPS = 256;
/** Maximum difference between 1 and the sum of the weights (DelegateOS 6.4). */
export const WEIGHT_TOLERANCE = 0.001;

/** A schema or pattern that must compile before the service accepts its contract. */
export interface Compilable {
  /** The name of the request's field that contains the schema or pattern. */
  field: string;
  schema?: unknown;
  pattern?: { pattern: string; flags: string };
}

/** The names of checks and models that contracts may use. */
export interface ContractNames {
  /** The checks that contracts may name. */
  checks: CheckFunctionRegistry;
  /** Whether a judge with the model is configured. */
  hasJudge(model: string): boolean;
}

interface Walk {
  contractNames: ContractNames;
  compilables: Compilable[];
  steps: number;
}

/**
 * Validates a verification without compiling its schemas and patterns (DelegateOS 6.1 to 6.4). So a faulty contract is
 * refused when it is created, and not when its first output is verified.
 *
 * @param field the field of the verification in the request
 * @returns the schemas and patterns to compile
 * @throws DeputeError INVALID_REQUEST or UNKNOWN_CHECK, naming the faulty field
 */
export function validateSpec(
  spec: VerificationSpec,
  field: string,
  contractNames: ContractNames,
): Compilable[] {
  const walk: Walk = { contractNames, compilables: [], steps: 0 };
  visit(spec, field, 1, walk);
  return walk.compilables;
}

function visit(spec: VerificationSpec, field: string, depth: number, walk: Walk): void {
  if (depth > MAX_SPEC_DEPTH) throw invalid(field, `composites are nested deeper than ${MAX_SPEC_DEPTH}`);
  walk.steps += 1;
  if (walk.steps > MAX_SPEC_STEPS) throw invalid(field, `more than ${MAX_SPEC_STEPS} verifications`);
  switch (spec.method) {
    case "schema_match":
      if (spec.schema !== undefined) walk.compilables.push({ field: `${field}.schema`, schema: spec.schema });
      return;
    case "deterministic_check":
      visitCheck(spec, field, walk);
      return;
    case "composite":
      visitComposite(spec, field, depth, walk);
      return;
    case "llm_judge":
      visitJudge(spec, field, walk);
      return;
    case "human_review":
      if (spec.reviewTimeoutMs !== undefined && !(spec.reviewTimeoutMs >= 1)) {
        throw invalid(`${field}.review_timeout_ms`, "must be at least 1 millisecond");
      }
      // A human_review needs a model only if the verification has a prompt for a judge. Without that prompt, an output
      // whose review times out has not passed.
      if (spec.judgePrompt !== undefined) visitJudge(spec, field, walk);
      return;
    default:
      throw invalid(`${field}.method`, `${String(spec.method)} is not a method that this verifier runs`);
  }
}

function visitJudge(spec: VerificationSpec, field: string, { contractNames }: Walk): void {
  const fault = judgeFault(spec);
  if (fault !== undefined) throw invalid(`${field}.${fault.member}`, fault.problem);
  if (!contractNames.hasJudge(spec.judgeModel ?? DEFAULT_JUDGE_MODEL)) {
    throw invalid(`${field}.judge_model`, "no judge with this model is configured");
  }
}

function visitCheck(spec: VerificationSpec, field: string, walk: Walk): void {
  const name = spec.checkName;
  if (name === undefined || name === "")
    throw invalid(`${field}.check_name`, "is required for deterministic_check");
  if (!walk.contractNames.checks.has(name)) {
    throw new DeputeError(ErrorReason.UNKNOWN_CHECK, `${field}.check_name: unknown check`, {
      metadata: { check: name.slice(0, 64).toWellFormed() },
      violations: [
        {
          field: `${field}.check_name`,
          description: `one of: ${walk.contractNames.checks.list().join(", ")}`,
        },
      ],
    });
  }
  const at = `${field}.check_params`;
  const fault = walk.contractNames.checks.paramsRule(name)(spec.checkParams);
  if (fault !== undefined) throw faultIn(at, fault);
  if (spec.expectedResult !== undefined) {
    const expected = expectedResultParams(spec.expectedResult);
    if (expected !== undefined) throw faultIn(`${field}.expected_result`, expected);
  }
  const params = spec.checkParams as Record<string, unknown>;
  if (name === "json_schema") walk.compilables.push({ field: `${at}.schema`, schema: params.schema });
  if (name === "regex_match") {
    const pattern = { pattern: params.pattern as string, flags: (params.flags as string | undefined) ?? "" };
    walk.compilables.push({ field: `${at}.pattern`, pattern });
  }
}

function faultIn(field: string, { member, problem }: ParamsFault): DeputeError {
  return invalid(member === "" ? field : `${field}.${member}`, problem);
}

function visitComposite(spec: VerificationSpec, field: string, depth: number, walk: Walk): void {
  const steps = spec.steps ?? [];
  if (steps.length === 0) throw invalid(`${field}.steps`, "a composite needs at least one step");
  if (spec.mode === undefined)
    throw invalid(`${field}.mode`, "a composite needs all_pass, majority or weighted");
  if (spec.mode === "weighted") validateWeights(spec.weights, steps.length, `${field}.weights.weights`);
  const threshold = spec.passThreshold;
  if (threshold !== undefined && !(threshold >= 0 && threshold <= 1)) {
    throw invalid(`${field}.pass_threshold`, "must be 0 to 1");
  }
  for (const [i, step] of steps.entries()) visit(step, `${field}.steps.steps[${i}]`, depth + 1, walk);
}

function validateWeights(weights: readonly number[] | undefined, steps: number, field: string): void {
  if (weights === undefined) throw invalid(field, "weighted needs one weight per step");
  if (weights.length !== steps) throw invalid(field, `${steps} steps need ${steps} weights`);
  // A negative weight would let a failed step raise the score. The comparison is negated, so that it also refuses NaN.
  const bad = weights.findIndex((weight) => !(weight >= 0 && weight <= 1));
  if (bad >= 0) throw invalid(`${field}[${bad}]`, "must be 0 to 1");
  const sum = weights.reduce((total, weight) => total + weight, 0);
  if (Math.abs(sum - 1) > WEIGHT_TOLERANCE + 1e-12) throw invalid(field, "the sum of the weights must be 1");
}
