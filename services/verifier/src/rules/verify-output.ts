import { DeputeError, isObject } from "@depute/core";
import type { CheckEngines, CheckFunctionRegistry } from "./check-registry.ts";
import { CheckNotRun, type CheckResult, shorten } from "./check-result.ts";
import { jsonSchema, sameJson } from "./checks.ts";
import { compositeResult } from "./composite.ts";
import type { VerificationSpec } from "./documents.ts";

/**
 * A contract's verification, and the contract's output schema. A schema_match without a schema of its own uses the
 * output schema.
 */
export interface OutputRule {
  verification: VerificationSpec;
  outputSchema: unknown;
}

/**
 * Verifies an output by a deterministic method (DelegateOS 10.3). If a check cannot run, the output has not passed,
 * even if the contract has an expectedResult. Throws only for a fault of the verifier service itself.
 */
export function verifyOutput(
  { verification: spec, outputSchema }: OutputRule,
  output: unknown,
  registry: CheckFunctionRegistry,
  engines: CheckEngines,
): CheckResult {
  switch (spec.method) {
    case "schema_match":
      return resultOrFailure(() => jsonSchema(output, engines.validator(spec.schema ?? outputSchema)));
    case "deterministic_check":
      return resultOrFailure(() => runCheck(spec, output, registry));
    case "composite":
      return resultOrFailure(() =>
        compositeResult(spec, (step) =>
          verifyOutput({ verification: step, outputSchema }, output, registry, engines),
        ),
      );
    default:
      return { passed: false, score: 0, details: "the checker does not run this method" };
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
  // DelegateOS compares the whole result with the whole expected result. If one lacks a member of the other, the two
  // differ.
  if (sameJson(result, spec.expectedResult)) return { ...result, passed: true };
  return {
    ...result,
    passed: false,
    details: shorten(
      `${name}: the result differs from the expected one${explain(result, spec.expectedResult)}`,
    ),
  };
}

function explain(result: CheckResult, expected: unknown): string {
  if (!isObject(expected)) return "";
  const memberNames = (value: object) => Object.keys(value).sort().join(", ");
  if (memberNames(result) !== memberNames(expected))
    return `: it has ${memberNames(result)}; expected: ${memberNames(expected)}`;
  return "";
}

function resultOrFailure(run: () => CheckResult): CheckResult {
  try {
    return run();
  } catch (error) {
    // If a schema recurses too deeply, the stack overflows and a RangeError is thrown.
    if (error instanceof CheckNotRun || error instanceof DeputeError || error instanceof RangeError) {
      return { passed: false, score: 0, details: shorten(`the check could not run: ${error.message}`) };
    }
    throw error;
  }
}
