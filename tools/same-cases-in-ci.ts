import fc from "fast-check";
import { CASES, currentRun } from "./test-split.ts";

/**
 * A change is judged in CI by the same generated cases as the one before, so that it passes or fails by what it is. Every
 * other run draws new ones, and prints the seed of what fails. `npm test` draws fewer than `npm run test:slow`.
 */
fc.configureGlobal({
  ...fc.readConfigureGlobal(),
  numRuns: CASES[currentRun()],
  ...(process.env.CI === "true" && { seed: 20_260_217 }),
});
