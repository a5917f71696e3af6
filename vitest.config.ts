import { hasPostgres } from "@depute/store/testing";
import { configDefaults, defineConfig, type TestProjectInlineConfiguration } from "vitest/config";
import { ALONE, currentRun, propertyFiles, SHARED, SLOW, SLOW_SHARED } from "./tools/test-split.ts";

const NEVER = [...configDefaults.exclude, "**/.generated/**"];

export default defineConfig({
  test: {
    environment: "node",
    setupFiles: ["./tools/same-cases-in-ci.ts", "./tools/patient-waits.ts"],
    projects: projects(),
    // Tests start servers and processes, so they run in separate processes, at most two at a time.
    pool: "forks",
    maxWorkers: 2,
    // The limit is generous, because tests do not sleep. Only a test that hangs, or a test on a busy machine,
    // reaches this limit.
    testTimeout: 60_000,
    // A machine that is busy can break a deadline. The reporter names each test that passed only when repeated.
    retry: process.env.CI === "true" ? 1 : 0,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 10_000 } },
    reporters: ["default", "./tools/vitest-reporter.ts"],
  },
});

type Tests = NonNullable<TestProjectInlineConfiguration["test"]>;

/** See tools/test-split.ts. Each test file is in `npm test` or in `npm run test:slow`; properties may be in both. */
function projects(): TestProjectInlineConfiguration[] {
  switch (currentRun()) {
    case "fast":
      return [
        project("shared", { include: [...SHARED], exclude: [...NEVER, ...SLOW, ...ALONE], isolate: false }),
        project("alone", { include: [...ALONE], exclude: [...NEVER, ...SLOW] }),
        project("all", { include: ["**/*.test.ts"], exclude: [...NEVER, ...SLOW, ...SHARED] }),
      ];
    case "slow":
      return [
        project("slow", { include: SLOW.map(testsOf), exclude: [...NEVER, ...SLOW_SHARED] }),
        project("slow shared", { include: [...SLOW_SHARED], exclude: NEVER, isolate: false }),
        project("properties", { include: propertyFiles(), exclude: [...NEVER, ...SLOW] }),
        ...onPostgres(),
      ];
    default:
      // With CI=true a file of the services is run on Postgres as well.
      return [
        project("all", { include: ["**/*.test.ts"], exclude: NEVER }),
        ...(process.env.CI === "true" ? onPostgres() : []),
      ];
  }
}

function project(name: string, test: Tests): TestProjectInlineConfiguration {
  return { extends: true, test: { name, ...test } };
}

/** Converts an entry of SLOW to a pattern of test files: `folder/**` means all tests in the folder. */
function testsOf(glob: string): string {
  return glob.endsWith("/**") ? `${glob}/*.test.ts` : glob;
}

/**
 * Runs the tests of the services a second time, on Postgres. Tests of pure rules and of checks are left out, because
 * such tests use no store, and tests that only count rows, because other tests run the same statements.
 */
function onPostgres(): TestProjectInlineConfiguration[] {
  if (!hasPostgres() && process.env.CI !== "true") {
    // biome-ignore lint/suspicious/noConsole: what is not tested has to be seen by the person who runs it
    console.warn("\n*** There is no Postgres on this machine: THE SERVICES ARE NOT TESTED ON IT. ***\n");
    return [];
  }
  return [
    project("on Postgres", {
      include: ["services/*/src/**/*.test.ts", "tests/schemas/*.test.ts"],
      exclude: [
        ...NEVER,
        ...["**/rules/**", "**/checker/**", "**/store/plans.test.ts", "**/sparse-*.test.ts"],
        ...[
          "services/verifier/src/threats.test.ts",
          "services/verifier/src/handlers/verification-cpu.test.ts",
        ],
      ],
      isolate: false,
      globalSetup: ["./tools/postgres-for-tests.ts"],
      setupFiles: ["./tools/same-cases-in-ci.ts", "./tools/patient-waits.ts", "./tools/on-postgres.ts"],
    }),
  ];
}
