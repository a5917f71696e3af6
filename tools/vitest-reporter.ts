import type { Reporter, TestModule } from "vitest/node";
import { type Tally, verdict } from "./tally.ts";

/** After vitest's own summary: what was skipped, and the run in one line for programs that read it. */
export default class TallyReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const { lines, fails } = verdict(tallyOf(modules, unhandledErrors.length), process.env.CI === "true");
    if (fails) process.exitCode = 1;
    // The reporters run side by side; the end of the process is after all of them.
    process.once("exit", () => console.log(lines.join("\n")));
  }
}

function tallyOf(modules: readonly TestModule[], unhandledErrors: number): Tally {
  const tally: Tally = { passed: 0, failed: unhandledErrors, skipped: [] };
  for (const module of modules) {
    // A file or a group that does not even load has no test that could fail.
    if (module.errors().length > 0) tally.failed++;
    for (const suite of module.children.allSuites()) if (suite.errors().length > 0) tally.failed++;
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      if (state === "passed") tally.passed++;
      else if (state === "failed") tally.failed++;
      else tally.skipped.push(`${module.relativeModuleId} > ${test.fullName}`);
    }
  }
  return tally;
}
