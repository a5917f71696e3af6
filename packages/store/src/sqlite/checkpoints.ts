import { Worker } from "node:worker_threads";
import type { CheckpointAnswer, CheckpointRequest } from "./checkpoint-thread.ts";

/**
 * Commits after which the log is folded into the file: about a thousand pages of it, so that a page which changes often is
 * written once for all of them.
 */
const EVERY_COMMITS = 64;

type Report = (error: unknown, what: string) => void;

/**
 * Folds a file's log into it in a thread beside the event loop, which would stop for the flushes that this takes. The one
 * thread of the process serves all its files.
 */
export class Checkpoints {
  readonly #file: string;
  readonly #onError: Report;
  #commits = 0;
  #isFolding = false;
  #isClosed = false;

  constructor(file: string, onError: Report) {
    this.#file = file;
    this.#onError = onError;
  }

  /** To be called after each commit. */
  committed(): void {
    this.#commits++;
    if (this.#commits < EVERY_COMMITS || this.#isFolding || this.#isClosed) return;
    this.#commits = 0;
    this.#isFolding = true;
    ask({ file: this.#file, what: "fold" })
      .catch((error: unknown) => this.#onError(error, "the log could not be folded into the database"))
      .finally(() => {
        this.#isFolding = false;
      });
  }

  /** Lets the file go. To be called before the last connection of the process closes, which folds the rest. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await leave(this.#file).catch((error: unknown) => this.#onError(error, "the log could not be let go"));
  }
}

interface Waiting {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** The thread, while there is one, and who waits for its answers, in their order. */
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
  await ask({ file, what: "leave" });
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
    // Nobody needs the process for the thread alone.
    if (waiting.length === 0) worker.unref();
    if (error === undefined) first?.resolve();
    else first?.reject(error);
  });
  worker.on("error", lose);
  worker.on("exit", () => lose(new Error("the thread that folds logs has ended")));
  return started;
}
