export { DatabaseFiles, identityOf } from "../sqlite/files.ts";
export { cellsOf } from "./cells.ts";
export { type Cut, CuttingProxy } from "./cutting-proxy.ts";
export {
  freeSchema,
  hasPostgres,
  type OwnPostgres,
  ownPostgresForTests,
  postgresForTests,
  type TestPostgres,
} from "./postgres-server.ts";
export { type OpenForTests, storeSuite } from "./store-suite.ts";
