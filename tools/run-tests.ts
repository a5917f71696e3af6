import { spawn } from "node:child_process";
import { once } from "node:events";
import { type FailedFile, forgetFailures, readFailures } from "./failed-tests.ts";

/**
 * Maximum number of failed test files that a second run repeats. More failed files mean a defect, not a busy machine.
 */
const MAX_REPEATED_FILES = 5;

const code = await vitest([]);
process.exitCode = code !== 0 && process.env.CI === "true" ? await repeat(code) : code;

/**
 * Runs the failed files again, one at a time. Returns 0 if they pass, and `firstCode` if one fails again or none may be
 * repeated.
 */
async function repeat(firstCode: number): Promise<number> {
  const failed = readFailures();
  if (failed.length === 0 || failed.length > MAX_REPEATED_FILES) return firstCode;
  console.log("\n*** FAILED. The failed files run again, one at a time, without other tests beside them:");
  for (const file of failed) if ((await vitest(argumentsOf(file))) !== 0) return firstCode;
  console.log("\n*** FAILED IN THE WHOLE RUN, BUT PASSED ALONE:");
  for (const { project, path } of failed) console.log(`***   [${project}] ${path}`);
  return 0;
}

function argumentsOf({ project, path }: FailedFile): string[] {
  return [...(project === "" ? [] : ["--project", project]), path];
}

/** Runs vitest in a child process and returns its exit code. A signal counts as 1. */
async function vitest(args: readonly string[]): Promise<number> {
  forgetFailures();
  const child = spawn("vitest", ["run", ...process.argv.slice(2), ...args], { stdio: "inherit" });
  const [exitCode] = (await once(child, "exit")) as [number | null];
  return exitCode ?? 1;
}
