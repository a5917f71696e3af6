export { cellsOf } from "./cells.ts";
export { freeSchema, postgresForTests, type TestPostgres } from "./postgres-server.ts";
export { type OpenForTests, storeSuite } from "./store-suite.ts";
