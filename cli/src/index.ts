export { MODULE_NAMES, MODULES } from "./modules.ts";
export { type Platform, type PlatformOptions, startPlatform } from "./platform.ts";
export { type Child, startChild } from "./processes.ts";
