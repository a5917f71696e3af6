/**
 * A change is judged in CI by the same generated cases as the one before, so that it passes or fails by what it is. Every
 * other run draws new ones, and prints the seed of what fails.
 */
if (process.env.CI === "true") {
  const { default: fc } = await import("fast-check");
  fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 20_260_217 });
}
