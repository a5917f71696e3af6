import { globSync, readFileSync } from "node:fs";

/** Slow tests that run in one shared process, like those of {@link SHARED}. */
export const SLOW_SHARED: readonly string[] = [
  "packages/service/src/{answer-limit,host,transports}.test.ts",
  "packages/service/src/field-limit/with-field-limit.test.ts",
  "packages/service/src/quotas/bytes.test.ts",
  "packages/wire/src/json-schema/suite.test.ts",
  "services/registry/src/handlers/{agent-records,publish-capabilities,sparse-offers}.test.ts",
  "services/{registry,verifier}/src/handlers/purge-organization.test.ts",
  "services/tasks/src/messages/work/time.test.ts",
  "services/tasks/src/sessions/work/delegated-work.test.ts",
  "services/tokens/src/failed-start.test.ts",
  "services/tokens/src/store/audit-tree.test.ts",
  "services/verifier/src/output-verification.test.ts",
  // Each wire as a whole, over sockets: its documents, codes, refusals and lives.
  "tests/agenta/{callbacks,executions,grpc,life,refusals,third-party}.test.ts",
  "tests/asp/{grpc,http,notations,websocket}.test.ts",
  "tests/cap/{hostile,oversight}.test.ts",
  "tests/gateway/{audit,authorities,delegateos,delegateos-complete,log,refusals,rpc}.test.ts",
  "tests/identities/{bearer,exchange,purge-organization,stream-ends}.test.ts",
  "tests/nekte/{bad-input,codes,delegate,documents,grpc-reach,refusals}.test.ts",
];

/**
 * The tests that `npm run test:slow` runs instead of `npm test`: faults, separate processes, third-party
 * programs, models and long properties. A file belongs here if its tests take more than five seconds of an idle
 * processor.
 */
export const SLOW: readonly string[] = [
  // Faults: killed processes, cut connections, full disks.
  "tests/faults/**",
  "tests/*/faults.test.ts",
  "tests/tokens/killed.test.ts",
  "tests/nekte/endpoint-{faults,restarts,tls}.test.ts",
  "tests/mcp/upstream-death.test.ts",
  "services/tasks/src/crash.test.ts",
  "packages/store/src/postgres/{breaks,late-start,pooler,shared,store}.test.ts",
  // Tests that start several processes, and tests that run whole examples.
  "tests/*/processes.test.ts",
  "tests/{deploy,telemetry}/**",
  "tests/tls/**",
  "cli/src/processes.test.ts",
  "tests/gateway/depute-witness.test.ts",
  "tests/{registry,tasks,tokens,verifier}/replicas.test.ts",
  "tests/tasks/open-task-replicas.test.ts",
  "tests/tokens/root-replicas.test.ts",
  "tests/tasks/contexts.test.ts",
  "tests/registry/proposals/**",
  "tests/cli/**",
  "examples/**",
  "tests/docs/commands.test.ts",
  // The complete examples from the protocols' specifications.
  "tests/{asp,cap}/example.test.ts",
  // The console in a browser.
  "tests/console/**",
  // Packages that are built, packed, installed and run.
  "tests/packages/**",
  // Published third-party programs.
  "tests/a2a/**",
  "tests/nekte/published.test.ts",
  "tests/mcp/{clients,conformance}/**",
  "tests/mcp/{asking-stdio,changed-definitions,credentials,everything,filesystem,host-config,http-upstream,large-answers,limits,prompts,relay,shared-reservations,stdio,stdio-listen}.test.ts",
  // Hostile parties, schemas and outputs.
  "tests/asp/hostile.test.ts",
  "services/verifier/src/threats.test.ts",
  "services/verifier/src/checker/pool.test.ts",
  "services/verifier/src/handlers/verification-cpu.test.ts",
  // Models and long properties.
  "**/model.test.ts",
  "**/*.property.test.ts",
  "packages/core/src/quick-rules.test.ts",
  "packages/dct/src/fast/paths.test.ts",
  "packages/wire/src/json-schema/quick-schema.test.ts",
  "tests/agenta/formats.test.ts",
  // Tests that call every route or every list over sockets.
  "tests/gateway/{answer-limits,bodies,schemas}.test.ts",
  // Tests of agents' own endpoints, and tests with long waits.
  "tests/nekte/{context-end,endpoints,push}.test.ts",
  "tests/asp/{authorities,farming}.test.ts",
  "tests/sdk/worker.test.ts",
  // Every method as every role, and every read as a stranger.
  "tests/identities/{role-matrix,strangers}.test.ts",
  "tests/mcp/{earlier-tasks,login,message,own,task-listen,tasks}.test.ts",
  "tests/registry/refusals.test.ts",
  "tests/sdk/{connect,reviewer}.test.ts",
  "tests/simulation/simulated-clock.test.ts",
  "tests/tokens/{explain,explain-uses}.test.ts",
  // Files of the database that grow, and tools that run other programs.
  "packages/store/src/sqlite/{files,space}.test.ts",
  "tools/{breaking,dockerignore}.test.ts",
  ...SLOW_SHARED,
];

/**
 * Tests whose files share a process, because importing the modules takes longer than most of these tests. A test here
 * must not change process-wide state.
 */
export const SHARED: readonly string[] = [
  "**/rules/**/*.test.ts",
  "packages/{asp,client,core,dct,service,wire}/**/*.test.ts",
  "services/**/*.test.ts",
  "gateway/**/*.test.ts",
  "tests/{agenta,asp,cap,gateway,identities,nekte}/*.test.ts",
];

/** Tests of SHARED that read or change process-wide state. Each of their files runs in a process of its own. */
export const ALONE: readonly string[] = [
  "packages/client/src/run-assignment.test.ts",
  "packages/core/src/clock.test.ts",
  "packages/service/src/settings.test.ts",
  "packages/service/src/signals.test.ts",
  "services/verifier/src/checker/*.test.ts",
  "tests/nekte/python.test.ts",
];

/** The tests of a run: `npm test`, `npm run test:slow`, or those named on the command line. */
export type Run = "fast" | "slow" | "named";

/** Returns the run of this process, by the npm script that began it. */
export function currentRun(script = process.env.npm_lifecycle_event): Run {
  if (script === "test") return "fast";
  return script === "test:slow" ? "slow" : "named";
}

/** Default number of cases of a property. */
export const CASES: Readonly<Record<Run, number>> = { fast: 25, slow: 100, named: 100 };

/**
 * Returns the files whose property tests state no number of cases. The slow run generates more cases for these
 * files.
 */
export function propertyFiles(): string[] {
  return testFiles().filter((file) => {
    const text = readFileSync(file, "utf8");
    return count(text, "fc.assert(") > count(text, "numRuns");
  });
}

/** Returns the path of every test file, relative to the root of the repository. */
export function testFiles(): string[] {
  return globSync("**/*.test.ts", {
    exclude: (path) => /(^|\/)(node_modules|\.generated|dist)$/.test(path),
  }).sort();
}

function count(text: string, part: string): number {
  return text.split(part).length - 1;
}
