/** Part of `npm run lint`: no change of the contracts may break programs that were built on the base revision. */
import { checkBreaking } from "./breaking.ts";

const outcome = checkBreaking(".");
switch (outcome.kind) {
  case "compatible":
    console.log(`breaking: the contracts are compatible with ${outcome.base}`);
    break;
  case "breaking":
    console.error(outcome.report.trimEnd());
    console.error(`breaking: the contracts break programs built on ${outcome.base}`);
    process.exitCode = 1;
    break;
  case "no-base":
    console.log(`breaking: not compared: ${outcome.why}`);
    break;
  case "lacking":
    console.error(`*** breaking: NOT COMPARED: ${outcome.why} ***`);
    if (process.env.CI === "true") process.exitCode = 1;
    break;
}
