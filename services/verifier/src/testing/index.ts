/** What benchmarks work with beneath the calls: the log and the tables that it is kept in. */
export { migrations } from "../store/migrations.ts";
export { TransparencyLog } from "../transparency-log.ts";
