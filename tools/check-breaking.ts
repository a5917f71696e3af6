/** Part of `npm run lint`: refuses changes of the contracts that break programs built on the released contracts. */
import { checkBreaking, RELEASED } from "./breaking.ts";

const outcome = checkBreaking(".");
switch (outcome.kind) {
  case "compatible":
    console.log(`breaking: the contracts are compatible with ${RELEASED}`);
    break;
  case "breaking":
    console.error(outcome.report.trimEnd());
    console.error(
      `breaking: the contracts break programs built on ${RELEASED}; change contracts only additively`,
    );
    process.exitCode = 1;
    break;
  case "no-release":
    console.log(`breaking: not compared: ${RELEASED} does not exist`);
    break;
}
