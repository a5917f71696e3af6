import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** One measured value of a run. */
export interface Result {
  readonly suite: string;
  readonly benchmark: string;
  readonly name: string;
  /** The value in `unit`. For a contender it is the median time of a call. */
  readonly value: number;
  readonly unit: string;
  /** The interquartile range of the rounds in `unit`; absent for a value that is measured once. */
  readonly spread?: number;
  /** For a contender: its speed as a multiple of the first contender's in the same run. */
  readonly ratio?: number;
  /** The size at which the value was measured. */
  readonly at?: number;
  readonly goal?: { readonly text: string; readonly isMet: boolean };
}

/** The results of one run of several suites. */
export interface Run {
  /** The start of the run, in RFC 3339. */
  readonly time: string;
  readonly commit: string;
  readonly results: readonly Result[];
  /** The suites that failed or could not run on this machine, with the reason. */
  readonly failed: Readonly<Record<string, string>>;
}

const FOLDER = join(import.meta.dirname, "results");

/** Writes a run to bench/results, and returns the file's path. */
export function saveRun(run: Run, folder = FOLDER): string {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `${run.time.replaceAll(/[:.]/g, "-")}.json`);
  writeFileSync(file, `${JSON.stringify(run, undefined, 2)}\n`);
  return file;
}

/** Returns the last run in bench/results; undefined if there is none. */
export function lastRun(folder = FOLDER): Run | undefined {
  mkdirSync(folder, { recursive: true });
  const last = readdirSync(folder)
    .filter((name) => name.endsWith(".json"))
    .sort()
    .at(-1);
  return last === undefined ? undefined : (JSON.parse(readFileSync(join(folder, last), "utf8")) as Run);
}
