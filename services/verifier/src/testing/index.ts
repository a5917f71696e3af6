/** Exports for benchmarks, which use the log and its tables without RPCs. */
export { migrations } from "../store/migrations.ts";
export { TransparencyLog } from "../transparency-log.ts";
