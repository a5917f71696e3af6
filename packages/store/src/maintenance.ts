/** Functions for the tools of an operator. They work beside the processes that use a store. */
export { inspectStore, type SchemaState } from "./inspect.ts";
export { checkFile, type FileCopy, snapshotFiles } from "./sqlite/snapshot.ts";
