import { DatabaseSync } from "node:sqlite";
import { parentPort } from "node:worker_threads";

/**
 * A request to the checkpoint thread about one database file. The thread answers after it has carried out the request.
 */
export interface CheckpointRequest {
  readonly file: string;
  /**
   * `fold` copies the write-ahead log into the database file. `leave` means that this process no longer uses the file.
   */
  readonly action: "fold" | "leave";
}

export interface CheckpointAnswer extends CheckpointRequest {
  /** The error of the request; absent if the request succeeded. */
  readonly error?: unknown;
}

const open = new Map<string, DatabaseSync>();

function handleRequest({ file, action }: CheckpointRequest): void {
  if (action === "leave") {
    open.get(file)?.close();
    open.delete(file);
    return;
  }
  const database = open.get(file) ?? new DatabaseSync(file);
  open.set(file, database);
  // A passive checkpoint never waits. It skips pages that a reader or the writer blocks, and a later checkpoint copies
  // them.
  database.exec("PRAGMA wal_checkpoint(PASSIVE)");
}

parentPort?.on("message", (request: CheckpointRequest) => {
  try {
    handleRequest(request);
    parentPort?.postMessage(request);
  } catch (error) {
    parentPort?.postMessage({ ...request, error });
  }
});
