import fc from "fast-check";
import { CASES, currentRun } from "./test-split.ts";

/**
 * In CI, every change runs the same generated cases, so that only the change decides the result. Other runs
 * generate new cases and print the seed of a failure. `npm test` generates fewer cases than `npm run
 * test:slow`.
 */
fc.configureGlobal({
  ...fc.readConfigureGlobal(),
  numRuns: CASES[currentRun()],
  ...(process.env.CI === "true" && { seed: 20_260_217 }),
});
