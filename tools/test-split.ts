import { globSync, readFileSync } from "node:fs";

/**
 * What `npm run test:slow` runs rather than `npm test`: faults, processes of their own, programs that others published, models
 * and long properties. A file belongs here when it takes more than ten seconds of an idle processor.
 */
export const SLOW: readonly string[] = [
  // Faults: what is killed, cut off or full.
  "tests/faults/**",
  "tests/*/faults.test.ts",
  "tests/tokens/killed.test.ts",
  "tests/nekte/endpoint-{faults,restarts,tls}.test.ts",
  "tests/mcp/upstream-death.test.ts",
  "services/tasks/src/crash.test.ts",
  "packages/store/src/postgres/{breaks,store}.test.ts",
  // Processes apart, and whole examples.
  "tests/*/processes.test.ts",
  "tests/telemetry/**",
  "cli/src/processes.test.ts",
  "examples/**",
  // Whole examples of the protocols' texts.
  "tests/{asp,cap}/example.test.ts",
  // Programs that others published.
  "tests/nekte/published.test.ts",
  "tests/mcp/{changed-definitions,credentials,everything,filesystem,http-upstream,large-answers,prompts,stdio}.test.ts",
  // Hostile parties, schemas and outputs.
  "tests/asp/hostile.test.ts",
  "services/verifier/src/threats.test.ts",
  "services/verifier/src/checker/pool.test.ts",
  // Models and long properties.
  "**/model.test.ts",
  "**/*.property.test.ts",
  "packages/core/src/quick-{encode,rules}.test.ts",
  "packages/dct/src/fast/paths.test.ts",
  "services/verifier/src/rules/quick-schema.test.ts",
  "tests/agenta/formats.test.ts",
  // Every route, and every list, over sockets.
  "tests/gateway/{answer-limits,bodies,schemas}.test.ts",
  // Agents' own endpoints, and what takes a while to pass.
  "tests/nekte/{context-end,endpoints,push}.test.ts",
  "tests/asp/{authorities,farming}.test.ts",
  "tests/sdk/worker.test.ts",
];

/**
 * Tests that share a process and what it has imported, because importing takes longer than most of them. They leave nothing
 * behind in the process.
 */
export const SHARED: readonly string[] = [
  "**/rules/**/*.test.ts",
  "packages/{asp,client,core,dct,service,wire}/**/*.test.ts",
  "services/**/*.test.ts",
  "gateway/**/*.test.ts",
];

/** Of these, the ones that read or change what belongs to the whole process: each has one of its own. */
export const ALONE: readonly string[] = [
  "packages/client/src/carry-out.test.ts",
  "packages/core/src/clock.test.ts",
  "packages/service/src/settings.test.ts",
  "packages/service/src/signals.test.ts",
  "services/verifier/src/checker/*.test.ts",
];

/** Which tests a run is about: `npm test`, `npm run test:slow`, or those that somebody names. */
export type Run = "fast" | "slow" | "named";

/** The run of this process, by the npm script that began it. */
export function currentRun(script = process.env.npm_lifecycle_event): Run {
  if (script === "test") return "fast";
  return script === "test:slow" ? "slow" : "named";
}

/** Cases that a property is tried with, where it names no number of its own. */
export const CASES: Readonly<Record<Run, number>> = { fast: 25, slow: 100, named: 100 };

/** Files with properties that name no number of cases: the slow run tries more. */
export function propertyFiles(): string[] {
  return testFiles().filter((file) => {
    const text = readFileSync(file, "utf8");
    return count(text, "fc.assert(") > count(text, "numRuns");
  });
}

/** Every test file, from the root of the repository. */
export function testFiles(): string[] {
  return globSync("**/*.test.ts", {
    exclude: (path) => /(^|\/)(node_modules|\.generated)$/.test(path),
  }).sort();
}

function count(text: string, part: string): number {
  return text.split(part).length - 1;
}
