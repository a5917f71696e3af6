import { configDefaults, defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    environment: "node",
    setupFiles: ["./tools/same-cases-in-ci.ts"],
    include: ["**/*.test.ts"],
    exclude: [...configDefaults.exclude, "**/.generated/**"],
    // Tests start servers and processes, so files are kept apart from each other, and few at a time.
    pool: "forks",
    maxWorkers: 2,
    // Wide: nothing sleeps, so only a test that hangs gets there, or one on a machine that is busy with others.
    testTimeout: 20_000,
    hookTimeout: 20_000,
    reporters: ["default", "./tools/vitest-reporter.ts"],
  },
});
