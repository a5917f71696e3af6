import { execFileSync, fork } from "node:child_process";
import { join } from "node:path";
import { isQuick } from "./amount.ts";
import { printTable } from "./report.ts";
import { lastRun, type Result, type Run, saveRun } from "./results.ts";
import { summaryRows } from "./summary.ts";

/** Longest time of one suite in milliseconds. */
const MAX_SUITE_MS = 3_600_000;
/**
 * Suites that a quick run omits: they install another version of the project, or start several processes for each figure.
 */
const NOT_QUICK = ["start"];

/**
 * Runs suites one after the other, prints one table of all results, and saves them. A quick run saves nothing.
 *
 * @param toDocs gets the results of each suite after its end, so that a later suite's failure loses none
 * @returns the exit status: 1 if a suite failed
 */
export async function runAll(
  suites: readonly string[],
  toDocs: (results: readonly Result[]) => void,
): Promise<number> {
  const time = new Date().toISOString();
  const results: Result[] = [];
  const failed: Record<string, string> = {};
  for (const suite of suites.filter((name) => !isQuick || !NOT_QUICK.includes(name))) {
    console.log(`\n# ${suite}`);
    const begin = performance.now();
    try {
      const own = await runApart(suite);
      results.push(...own);
      toDocs(own);
    } catch (error) {
      failed[suite] = (error as Error).message;
      console.error(`the suite ${suite} failed: ${failed[suite]}`);
    }
    console.log(`\n${suite} took ${Math.round((performance.now() - begin) / 1000)} s`);
  }
  const before = isQuick ? undefined : lastRun();
  console.log(`\nAll suites${before === undefined ? "" : `, compared with the run of ${before.time}`}`);
  printTable(summaryRows(results, before));
  for (const [suite, reason] of Object.entries(failed)) console.log(`  ${suite}: FAILED: ${reason}`);
  if (!isQuick) {
    const commit = execFileSync("git", ["rev-parse", "HEAD"], { encoding: "utf8" }).trim();
    const run: Run = { time, commit, results, failed };
    console.log(`\nwritten to ${saveRun(run)}`);
  }
  return Object.keys(failed).length > 0 ? 1 : 0;
}

/** Runs a suite in a process of its own, so that its memory and its compiled code affect no other suite. */
async function runApart(suite: string): Promise<Result[]> {
  const child = fork(join(import.meta.dirname, "main.ts"), [suite], {
    execArgv: ["--expose-gc"],
    serialization: "advanced",
  });
  const kill = setTimeout(() => child.kill("SIGKILL"), MAX_SUITE_MS);
  try {
    return await new Promise((resolve, reject) => {
      let results: Result[] | undefined;
      child.on("message", (message) => {
        results = message as Result[];
        // An open handle of the suite must not keep the process alive, because the results are complete.
        child.disconnect();
      });
      child.on("error", reject);
      child.on("exit", (code, signal) => {
        if (results !== undefined && code === 0) resolve(results);
        else reject(new Error(`its process ended with ${signal ?? code}`));
      });
    });
  } finally {
    clearTimeout(kill);
  }
}
