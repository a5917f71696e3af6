import { hasPostgres } from "@depute/store/testing";
import { configDefaults, defineConfig } from "vitest/config";

/** `npm test` and CI run what concerns the services' stores on both databases; a narrower run keeps to files. */
const isWholeRun = process.env.npm_lifecycle_event === "test" || process.env.CI === "true";

export default defineConfig({
  test: {
    environment: "node",
    setupFiles: ["./tools/same-cases-in-ci.ts"],
    exclude: [...configDefaults.exclude, "**/.generated/**"],
    projects: [
      { extends: true, test: { name: "all", include: ["**/*.test.ts"] } },
      ...(isWholeRun ? onPostgres() : []),
    ],
    // Tests start servers and processes, so files are kept apart from each other, and few at a time.
    pool: "forks",
    maxWorkers: 2,
    // Wide: nothing sleeps, so only a test that hangs gets there, or one on a machine that is busy with others.
    testTimeout: 20_000,
    hookTimeout: 20_000,
    reporters: ["default", "./tools/vitest-reporter.ts"],
  },
});

/** The services' tests but for those of pure rules, once more. */
function onPostgres() {
  if (!hasPostgres() && process.env.CI !== "true") {
    // biome-ignore lint/suspicious/noConsole: what is not tested has to be seen by the person who runs it
    console.warn("\n*** There is no Postgres on this machine: THE SERVICES ARE NOT TESTED ON IT. ***\n");
    return [];
  }
  const test = {
    name: "on Postgres",
    include: ["services/*/src/**/*.test.ts"],
    exclude: [...configDefaults.exclude, "**/rules/**", "**/checker/**", "**/store/plans.test.ts"],
    globalSetup: ["./tools/postgres-for-tests.ts"],
    setupFiles: ["./tools/same-cases-in-ci.ts", "./tools/on-postgres.ts"],
  };
  return [{ extends: true as const, test }];
}
