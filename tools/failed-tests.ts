import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

/** A test file with a failed test, and the vitest project that ran the file. */
export interface FailedFile {
  project: string;
  path: string;
}

/** The reporter of the tests writes this file. tools/run-tests.ts reads the file after the run. */
const FILE = ".generated/failed-tests.json";

export function forgetFailures(): void {
  rmSync(FILE, { force: true });
}

export function writeFailures(files: readonly FailedFile[]): void {
  mkdirSync(dirname(FILE), { recursive: true });
  writeFileSync(FILE, JSON.stringify(files));
}

/** Returns the failed files of the last run. Returns none if the run ended before its report. */
export function readFailures(): FailedFile[] {
  try {
    return JSON.parse(readFileSync(FILE, "utf8")) as FailedFile[];
  } catch {
    return [];
  }
}
