import type { Reporter, TestModule } from "vitest/node";
import { type FailedFile, writeFailures } from "./failed-tests.ts";
import { type Tally, verdict } from "./tally.ts";

/** Prints the skipped and the repeated tests after vitest's own summary. Then prints one line about the run for other programs. */
export default class TallyReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const { lines, fails } = verdict(tallyOf(modules, unhandledErrors.length), process.env.CI === "true");
    if (fails) process.exitCode = 1;
    // A repetition cannot help if a skipped test fails the run.
    writeFailures(fails ? [] : filesToRepeat(modules, unhandledErrors));
    // Reporters run at the same time, so these lines are printed when the process exits, after all reporters.
    process.once("exit", () => console.log(lines.join("\n")));
  }
}

/**
 * Returns the files with a failed test, and the files with an unhandled error and a test that passed only when repeated.
 * A test that fails may leave calls open, and their later errors are unhandled. Returns no file if an unhandled error
 * comes from a file in which no test failed, because such an error is a defect, not an effect of a busy machine.
 */
function filesToRepeat(modules: readonly TestModule[], errors: readonly unknown[]): FailedFile[] {
  // vitest adds the path of the file to an error.
  const paths = errors.map((error) => (error as { VITEST_TEST_PATH?: string }).VITEST_TEST_PATH);
  const unsteady = modules.filter((module) => module.state() === "failed" || hasRepeatedTest(module));
  if (!paths.every((path) => unsteady.some(({ moduleId }) => moduleId === path))) return [];
  return unsteady
    .filter((module) => module.state() === "failed" || paths.includes(module.moduleId))
    .map((module) => ({ project: module.project.name, path: module.relativeModuleId }));
}

function hasRepeatedTest(module: TestModule): boolean {
  return [...module.children.allTests()].some((test) => test.diagnostic()?.flaky === true);
}

function tallyOf(modules: readonly TestModule[], unhandledErrors: number): Tally {
  const tally: Tally = { passed: 0, failed: unhandledErrors, skipped: [], repeated: [] };
  for (const module of modules) {
    // A file or group that does not load has no tests that could fail. So the reporter counts the file or group
    // as a failure.
    if (module.errors().length > 0) tally.failed++;
    for (const suite of module.children.allSuites()) if (suite.errors().length > 0) tally.failed++;
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      const name = `${module.relativeModuleId} > ${test.fullName}`;
      if (test.diagnostic()?.flaky === true) tally.repeated.push(name);
      if (state === "passed") tally.passed++;
      else if (state === "failed") tally.failed++;
      else tally.skipped.push(name);
    }
  }
  return tally;
}
