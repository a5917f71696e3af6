import { closeSync, fdatasync, openSync } from "node:fs";
import { Worker } from "node:worker_threads";
import type { CheckpointAnswer, CheckpointRequest } from "./checkpoint-thread.ts";

/** Flushes SQLite's write-ahead log to disk in the background. SQLite's own flush would block the event loop. */
export class LogFlusher {
  /** The descriptor of the log. */
  readonly fd: number;
  #isClosed = false;

  /** @param file a database in WAL mode with at least one commit, so that its log exists */
  constructor(file: string) {
    this.fd = openSync(`${file}-wal`, "r");
  }

  /** Resolves when all earlier commits are on disk. */
  flush(): Promise<void> {
    return new Promise((resolve, reject) => {
      fdatasync(this.fd, (error) => (error === null ? resolve() : reject(error)));
    });
  }

  /**
   * Closes the descriptor of the log. This releases none of SQLite's locks, which are on the database and on the log's
   * index.
   */
  close(): void {
    if (!this.#isClosed) closeSync(this.fd);
    this.#isClosed = true;
  }
}

/**
 * Number of commits between checkpoints. These commits write about a thousand pages of log. A checkpoint copies a page
 * once, even if many of these commits changed it.
 */
const EVERY_COMMITS = 64;

type Report = (error: unknown, activity: string) => void;

/**
 * Copies a database's write-ahead log into its file (a checkpoint) on a separate thread. On the main thread, the
 * flushes would block the event loop. One thread serves all database files of the process.
 */
export class Checkpoints {
  readonly #file: string;
  readonly #onError: Report;
  #commits = 0;
  #isFolding = false;
  #isDue = false;
  #isClosed = false;

  constructor(file: string, onError: Report) {
    this.#file = file;
    this.#onError = onError;
  }

  /** Counts a commit, and starts a checkpoint after every EVERY_COMMITS commits. Call this method after each commit. */
  committed(): void {
    this.#commits++;
    if (this.#commits >= EVERY_COMMITS && !this.#isFolding) this.fold();
  }

  /** Starts a checkpoint, or schedules another checkpoint after the running one. */
  fold(): void {
    this.#isDue = true;
    if (this.#isFolding || this.#isClosed) return;
    this.#isDue = false;
    this.#commits = 0;
    this.#isFolding = true;
    ask({ file: this.#file, action: "fold" })
      .catch((error: unknown) =>
        this.#onError(error, "the write-ahead log could not be copied into the database file"),
      )
      .finally(() => {
        this.#isFolding = false;
        if (this.#isDue) this.fold();
      });
  }

  /**
   * Releases the file. Call this method before the process closes its last connection. At that close, SQLite copies the
   * rest of the log into the database file.
   */
  async close(): Promise<void> {
    this.#isClosed = true;
    await leave(this.#file).catch((error: unknown) =>
      this.#onError(error, "the checkpoint thread could not release the log"),
    );
  }
}

interface Waiting {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** The running thread, and the requests that wait for its answers, in order. */
let thread: { readonly worker: Worker; readonly waiting: Waiting[]; readonly files: Set<string> } | undefined;

function ask(request: CheckpointRequest): Promise<void> {
  thread ??= start();
  const { worker, waiting, files } = thread;
  files.add(request.file);
  return new Promise((resolve, reject) => {
    waiting.push({ resolve, reject });
    worker.ref();
    worker.postMessage(request);
  });
}

async function leave(file: string): Promise<void> {
  const used = thread;
  if (used?.files.has(file) !== true) return;
  await ask({ file, action: "leave" });
  used.files.delete(file);
  if (used.files.size > 0 || thread !== used) return;
  thread = undefined;
  await used.worker.terminate();
}

function start() {
  const worker = new Worker(new URL("./checkpoint-thread.ts", import.meta.url), { env: {}, execArgv: [] });
  const waiting: Waiting[] = [];
  const started = { worker, waiting, files: new Set<string>() };
  const lose = (error: unknown) => {
    if (thread === started) thread = undefined;
    for (const { reject } of waiting.splice(0)) reject(error);
  };
  worker.on("message", ({ error }: CheckpointAnswer) => {
    const first = waiting.shift();
    // An idle thread must not keep the process alive.
    if (waiting.length === 0) worker.unref();
    if (error === undefined) first?.resolve();
    else first?.reject(error);
  });
  worker.on("error", lose);
  worker.on("exit", () => lose(new Error("the checkpoint thread has ended")));
  return started;
}
