export { documentOf, SealingPlatform } from "./log.ts";
export { played } from "./played.ts";
