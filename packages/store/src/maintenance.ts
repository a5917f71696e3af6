/** Functions for the tools of an operator. Operators may call them while other processes use the store. */
export { inspectStore, type SchemaState } from "./inspect.ts";
export { checkFile, type FileCopy, snapshotFiles } from "./sqlite/snapshot.ts";
