export { cellsOf } from "./cells.ts";
export { freeSchema, hasPostgres, postgresForTests, type TestPostgres } from "./postgres-server.ts";
export { type OpenForTests, storeSuite } from "./store-suite.ts";
