export { MODULE_NAMES } from "./load-modules.ts";
export { MODULES } from "./modules.ts";
export { type Platform, type PlatformOptions, startPlatform } from "./platform.ts";
export { type Child, startChild } from "./processes.ts";
