import { execFileSync, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { isQuick } from "./amount.ts";
import { inFlight } from "./in-flight.ts";
import { printTable } from "./report.ts";
import { lastRun, type Result, type Run, saveRun } from "./results.ts";
import { summaryRows } from "./summary.ts";

/** Longest time of one suite in milliseconds. */
const MAX_SUITE_MS = 3_600_000;
/** Longest wait for the output of a suite that has ended, in milliseconds. */
const LAST_OUTPUT_MS = 1_000;
/**
 * Suites that a quick run omits: they install another version of the project, or start several processes for each figure.
 */
const NOT_QUICK = ["start"];
/** Suites that run side by side. In a quick run the values mean nothing, so its suites may disturb each other. */
const SIDE_BY_SIDE = isQuick ? 2 : 1;

/**
 * Runs all suites, prints one table of all results, and saves them. A quick run saves nothing.
 *
 * @param toDocs gets the results of each suite after its end, so that a later suite's failure loses none
 * @returns the exit status: 1 if a suite failed
 */
export async function runAll(
  suites: readonly string[],
  toDocs: (results: readonly Result[]) => void,
): Promise<number> {
  const time = new Date().toISOString();
  const bySuite = new Map<string, readonly Result[]>();
  const failed: Record<string, string> = {};
  const running = suites.filter((name) => !isQuick || !NOT_QUICK.includes(name));
  const run = async (suite: string) => {
    delete failed[suite];
    const begin = performance.now();
    try {
      const own = await runApart(suite);
      bySuite.set(suite, own);
      toDocs(own);
    } catch (error) {
      failed[suite] = (error as Error).message;
      console.error(`the suite ${suite} failed: ${failed[suite]}`);
    }
    console.log(`\n${suite} took ${Math.round((performance.now() - begin) / 1000)} s`);
  };
  await inFlight(running.length, SIDE_BY_SIDE, (i) => run(running[i] as string));
  // A suite beside another one may break a deadline, so it runs again alone.
  if (SIDE_BY_SIDE > 1) for (const suite of Object.keys(failed)) await run(suite);
  const results = running.flatMap((suite) => bySuite.get(suite) ?? []);
  const before = isQuick ? undefined : lastRun();
  console.log(`\nAll suites${before === undefined ? "" : `, compared with the run of ${before.time}`}`);
  printTable(summaryRows(results, before));
  for (const [suite, reason] of Object.entries(failed)) console.log(`  ${suite}: FAILED: ${reason}`);
  if (!isQuick) {
    const commit = execFileSync("git", ["rev-parse", "HEAD"], { encoding: "utf8" }).trim();
    const saved: Run = { time, commit, results, failed };
    console.log(`\nwritten to ${saveRun(saved)}`);
  }
  return Object.keys(failed).length > 0 ? 1 : 0;
}

/**
 * Runs a suite in a process of its own, so that its memory and its compiled code affect no other suite. Suites that run
 * side by side print their output when they end.
 */
async function runApart(suite: string): Promise<Result[]> {
  const isAlone = SIDE_BY_SIDE === 1;
  if (isAlone) console.log(`\n# ${suite}`);
  const child = fork(join(import.meta.dirname, "main.ts"), [suite], {
    execArgv: ["--expose-gc"],
    serialization: "advanced",
    silent: !isAlone,
  });
  const output: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (chunk: Buffer) => void output.push(chunk));
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
    if (!isAlone) {
      // A process that outlives the suite may keep the streams open, so the wait is limited.
      await Promise.race([once(child, "close"), pause(LAST_OUTPUT_MS)]);
      console.log(`\n# ${suite}\n${Buffer.concat(output)}`);
    }
  }
}
