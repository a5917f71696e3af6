import { DeputeError, isObject } from "@depute/core";
import type { CheckEngines, CheckFunctionRegistry } from "./check-registry.ts";
import { CheckNotRun, type CheckResult, shorten } from "./check-result.ts";
import { jsonSchema, sameJson } from "./checks.ts";
import { judgeSteps } from "./composite.ts";
import type { VerificationSpec } from "./documents.ts";

/** How an output is judged: a contract's verification, and its schema for a schema_match that names none. */
export interface Judgement {
  verification: VerificationSpec;
  outputSchema: unknown;
}

/**
 * Whether an output passes (DelegateOS 10.3).
 *
 * A check that cannot be carried out has not passed, and an expectedResult does not change that. Never throws, except
 * for a fault of our own.
 */
export function verifyOutput(
  { verification: spec, outputSchema }: Judgement,
  output: unknown,
  registry: CheckFunctionRegistry,
  engines: CheckEngines,
): CheckResult {
  switch (spec.method) {
    case "schema_match":
      return carryOut(() => jsonSchema(output, engines.validator(spec.schema ?? outputSchema)));
    case "deterministic_check":
      return carryOut(() => runCheck(spec, output, registry));
    case "composite":
      return carryOut(() =>
        judgeSteps(spec, (step) =>
          verifyOutput({ verification: step, outputSchema }, output, registry, engines),
        ),
      );
    default:
      return { passed: false, score: 0, details: "the verification method is not run here" };
  }
}

function runCheck(spec: VerificationSpec, output: unknown, registry: CheckFunctionRegistry): CheckResult {
  const name = spec.checkName ?? "";
  const fn = registry.get(name);
  const fault = registry.paramsRule(name)(spec.checkParams);
  if (fault !== undefined) throw new CheckNotRun(`${name}: ${fault.member} ${fault.problem}`);
  const result = fn(output, spec.checkParams);
  if (spec.expectedResult === undefined) {
    return result.passed || result.details !== undefined
      ? result
      : { ...result, details: `${name} did not pass` };
  }
  // The text compares with the whole result, absent members included.
  if (sameJson(result, spec.expectedResult)) return { ...result, passed: true };
  return {
    ...result,
    passed: false,
    details: shorten(`${name}: the result is not the expected one${explain(result, spec.expectedResult)}`),
  };
}

function explain(result: CheckResult, expected: unknown): string {
  if (!isObject(expected)) return "";
  const named = (value: object) => Object.keys(value).sort().join(", ");
  if (named(result) !== named(expected)) return `: it has ${named(result)}; expected were ${named(expected)}`;
  return "";
}

function carryOut(run: () => CheckResult): CheckResult {
  try {
    return run();
  } catch (error) {
    // RangeError: a schema that recurses deeper than the stack.
    if (error instanceof CheckNotRun || error instanceof DeputeError || error instanceof RangeError) {
      return { passed: false, score: 0, details: shorten(`could not be checked: ${error.message}`) };
    }
    throw error;
  }
}
