export { type OpenForTests, storeSuite } from "./store-suite.ts";
