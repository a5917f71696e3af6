import { CheckNotRun, type CheckResult, shorten } from "./check-result.ts";
import type { VerificationSpec } from "./documents.ts";

/** The score from which `weighted` passes, if the contract states no threshold (DelegateOS 6.4). */
export const DEFAULT_PASS_THRESHOLD = 0.7;

// Tolerance for rounding errors of sums. Ten times 0.1 is 0.9999999999999999, which must reach a threshold of 1.
const ROUNDING = 1e-9;

/**
 * Computes the result of a composite (DelegateOS 6.4). `run` verifies one step. The mode all_pass runs the steps in
 * order and stops at the first failure; the other modes run all steps.
 *
 * @throws CheckNotRun if the composite has no steps, an unknown mode, a number of weights other than the number of
 * steps, or a weight or score that is not a number; the errors of `run`
 */
export function compositeResult(
  spec: VerificationSpec,
  run: (step: VerificationSpec) => CheckResult,
): CheckResult {
  const steps = spec.steps ?? [];
  if (steps.length === 0) throw new CheckNotRun("the composite has no steps");
  switch (spec.mode) {
    case "all_pass":
      return allPass(steps, run);
    case "majority":
      return majority(steps.map(run));
    case "weighted":
      return weighted(steps.map(run), spec.weights ?? [], spec.passThreshold ?? DEFAULT_PASS_THRESHOLD);
    default:
      throw new CheckNotRun("the composite has no mode");
  }
}

function allPass(
  steps: readonly VerificationSpec[],
  run: (step: VerificationSpec) => CheckResult,
): CheckResult {
  for (const [i, step] of steps.entries()) {
    const result = run(step);
    if (!result.passed) {
      const details = shorten(`Step ${i} failed: ${result.details ?? "did not pass"}`);
      return { passed: false, score: 0, details };
    }
  }
  return { passed: true, score: 1 };
}

function majority(results: readonly CheckResult[]): CheckResult {
  const count = results.filter((result) => result.passed).length;
  const passed = count > results.length / 2;
  return withFailures({ passed, score: count / results.length }, results);
}

function weighted(
  results: readonly CheckResult[],
  weights: readonly number[],
  threshold: number,
): CheckResult {
  if (weights.length !== results.length) throw new CheckNotRun("each step needs one weight");
  const sum = results.reduce((total, result, i) => total + (weights[i] ?? Number.NaN) * scoreOf(result), 0);
  if (!Number.isFinite(sum)) throw new CheckNotRun("a weight or score is not a number");
  const score = Math.min(1, Math.max(0, sum));
  return withFailures({ passed: sum >= threshold - ROUNDING, score }, results);
}

function scoreOf(result: CheckResult): number {
  return result.score ?? (result.passed ? 1 : 0);
}

function withFailures(result: CheckResult, results: readonly CheckResult[]): CheckResult {
  if (result.passed) return result;
  const failed = results.flatMap(({ passed, details }, i) =>
    passed ? [] : [`Step ${i} failed: ${details ?? "did not pass"}`],
  );
  return failed.length === 0 ? result : { ...result, details: shorten(failed.join("; ")) };
}
