/** `npm run record-contracts`: records the contracts on disk as released, for the breaking check. */
import { RELEASED, recordContracts } from "./breaking.ts";

recordContracts(".");
console.log(`recorded the contracts in ${RELEASED}`);
