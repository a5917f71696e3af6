/**
 * `npm run generate`: copies third-party protos from installed packages, then generates TypeScript from all contracts.
 */
import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { writeThirdPartyProtos } from "./third-party-protos.ts";

const THIRD_PARTY = ".generated/third_party";

rmSync(THIRD_PARTY, { recursive: true, force: true });
writeThirdPartyProtos(THIRD_PARTY);
execFileSync("buf", ["generate"], { stdio: "inherit" });
