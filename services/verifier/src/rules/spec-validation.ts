import { DeputeError, ErrorReason, invalid } from "@depute/core";
import { expectedResultParams, type ParamsFault } from "./check-params.ts";
import type { CheckFunctionRegistry } from "./check-registry.ts";
import type { VerificationSpec } from "./documents.ts";
import { DEFAULT_JUDGE_MODEL, judgeFault } from "./judge.ts";

/** Deepest nesting of composites; the contract's own verification is level 1. */
export const MAX_SPEC_DEPTH = 8;
/** Most verifications in one contract, composites and their steps together. */
export const MAX_SPEC_STEPS = 256;
/** How far weights may be from the sum 1 (DelegateOS 6.4). */
export const WEIGHT_TOLERANCE = 0.001;

/** What a contract brings that has to be compiled before it can be trusted to run. */
export interface Compilable {
  /** Where it stands in the request. */
  field: string;
  schema?: unknown;
  pattern?: { pattern: string; flags: string };
}

/** What a contract may refer to. */
export interface Known {
  /** The checks that there are. */
  checks: CheckFunctionRegistry;
  /** Whether there is a judge of a model. */
  hasJudge(model: string): boolean;
}

interface Walk {
  known: Known;
  found: Compilable[];
  steps: number;
}

/**
 * Checks a verification as far as that is possible without compiling (DelegateOS 6.1 to 6.4), so that a fault in a
 * contract shows when it is made and never when an output is judged.
 *
 * @param field where the verification stands in the request
 * @returns the schemas and patterns that still have to be compiled
 * @throws DeputeError INVALID_REQUEST or UNKNOWN_CHECK, with the field at fault
 */
export function validateSpec(spec: VerificationSpec, field: string, known: Known): Compilable[] {
  const walk: Walk = { known, found: [], steps: 0 };
  visit(spec, field, 1, walk);
  return walk.found;
}

function visit(spec: VerificationSpec, field: string, depth: number, walk: Walk): void {
  if (depth > MAX_SPEC_DEPTH) throw invalid(field, `composites are nested deeper than ${MAX_SPEC_DEPTH}`);
  walk.steps += 1;
  if (walk.steps > MAX_SPEC_STEPS) throw invalid(field, `more than ${MAX_SPEC_STEPS} verifications`);
  switch (spec.method) {
    case "schema_match":
      if (spec.schema !== undefined) walk.found.push({ field: `${field}.schema`, schema: spec.schema });
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
        throw invalid(`${field}.review_timeout_ms`, "at least a millisecond is needed");
      }
      // Without a rubric nobody decides after the time is over, and the output has not passed.
      if (spec.judgePrompt !== undefined) visitJudge(spec, field, walk);
      return;
    default:
      throw invalid(`${field}.method`, `${String(spec.method)} is not run by this verifier`);
  }
}

function visitJudge(spec: VerificationSpec, field: string, { known }: Walk): void {
  const fault = judgeFault(spec);
  if (fault !== undefined) throw invalid(`${field}.${fault.member}`, fault.problem);
  if (!known.hasJudge(spec.judgeModel ?? DEFAULT_JUDGE_MODEL)) {
    throw invalid(`${field}.judge_model`, "no judge of that model is configured here");
  }
}

function visitCheck(spec: VerificationSpec, field: string, walk: Walk): void {
  const name = spec.checkName;
  if (name === undefined || name === "") throw invalid(`${field}.check_name`, "deterministic_check needs it");
  if (!walk.known.checks.has(name)) {
    throw new DeputeError(ErrorReason.UNKNOWN_CHECK, `${field}.check_name: no check of that name`, {
      metadata: { check: name.slice(0, 64).toWellFormed() },
      violations: [
        { field: `${field}.check_name`, description: `one of: ${walk.known.checks.list().join(", ")}` },
      ],
    });
  }
  const at = `${field}.check_params`;
  const fault = walk.known.checks.paramsRule(name)(spec.checkParams);
  if (fault !== undefined) throw faultIn(at, fault);
  if (spec.expectedResult !== undefined) {
    const expected = expectedResultParams(spec.expectedResult);
    if (expected !== undefined) throw faultIn(`${field}.expected_result`, expected);
  }
  const params = spec.checkParams as Record<string, unknown>;
  if (name === "json_schema") walk.found.push({ field: `${at}.schema`, schema: params.schema });
  if (name === "regex_match") {
    const pattern = { pattern: params.pattern as string, flags: (params.flags as string | undefined) ?? "" };
    walk.found.push({ field: `${at}.pattern`, pattern });
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
    throw invalid(`${field}.pass_threshold`, "0 to 1");
  }
  for (const [i, step] of steps.entries()) visit(step, `${field}.steps.steps[${i}]`, depth + 1, walk);
}

function validateWeights(weights: readonly number[] | undefined, steps: number, field: string): void {
  if (weights === undefined) throw invalid(field, "weighted needs a weight for each step");
  if (weights.length !== steps) throw invalid(field, `${steps} steps need as many weights`);
  // A negative weight would let a failure raise the score. NaN fails this comparison as well.
  const bad = weights.findIndex((weight) => !(weight >= 0 && weight <= 1));
  if (bad >= 0) throw invalid(`${field}[${bad}]`, "0 to 1");
  const sum = weights.reduce((total, weight) => total + weight, 0);
  if (Math.abs(sum - 1) > WEIGHT_TOLERANCE + 1e-12) throw invalid(field, "the weights have to add up to 1");
}
