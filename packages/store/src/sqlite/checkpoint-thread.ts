import { DatabaseSync } from "node:sqlite";
import { parentPort } from "node:worker_threads";

/** What the thread is asked to do with a file, and what it answers when it has done it. */
export interface CheckpointRequest {
  readonly file: string;
  /** `fold`: what is in the log goes into the file; `leave`: the file is not used any more. */
  readonly what: "fold" | "leave";
}

export interface CheckpointAnswer extends CheckpointRequest {
  /** What went wrong, if anything. */
  readonly error?: unknown;
}

const open = new Map<string, DatabaseSync>();

function carryOut({ file, what }: CheckpointRequest): void {
  if (what === "leave") {
    open.get(file)?.close();
    open.delete(file);
    return;
  }
  const database = open.get(file) ?? new DatabaseSync(file);
  open.set(file, database);
  // Waits for nobody: what a reader or the writer holds up is folded the next time.
  database.exec("PRAGMA wal_checkpoint(PASSIVE)");
}

parentPort?.on("message", (request: CheckpointRequest) => {
  try {
    carryOut(request);
    parentPort?.postMessage(request);
  } catch (error) {
    parentPort?.postMessage({ ...request, error });
  }
});
