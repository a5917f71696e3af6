import { Worker } from "node:worker_threads";
import { DeputeError, ErrorReason, type Timers } from "@depute/core";
import type { Job, JobResult, WorkerMessage, WorkerRequest } from "./jobs.ts";

export interface PoolOptions {
  /** Worker threads; each runs one job at a time. */
  readonly size: number;
  /** Milliseconds that one job may run; waiting for a worker does not count. */
  readonly jobLimitMs: number;
  /** Jobs that may wait for a worker. */
  readonly maxWaiting: number;
  /** Megabytes of heap of one worker. */
  readonly memoryMb: number;
  readonly timers: Timers;
  /** Told when a worker was lost, not when a job reached its limit. */
  readonly onError: (error: unknown, what: string) => void;
}

interface Pending {
  readonly job: Job;
  readonly signal: AbortSignal | undefined;
  resolve(result: JobResult): void;
  reject(error: Error): void;
}

interface Slot {
  readonly worker: Worker;
  ready: boolean;
  /** The job that it runs, by the number of the request. */
  current?: { id: number; pending: Pending; cancel: () => void } | undefined;
}

/** How often in a row a worker may fail to start before jobs are refused. */
const MAX_FAILED_STARTS = 3;

/**
 * Worker threads for what users wrote. The event loop of the service is never held by a schema or a pattern: a job
 * that does not end in time ends with its thread, which is replaced.
 */
export class WorkerPool {
  readonly #options: PoolOptions;
  readonly #slots = new Set<Slot>();
  readonly #waiting: Pending[] = [];
  #requests = 0;
  #failedStarts = 0;
  #closed = false;

  constructor(options: PoolOptions) {
    this.#options = options;
    for (let i = 0; i < options.size; i++) this.#spawn();
  }

  /**
   * Runs a job. One whose `signal` has aborted while it waited is not begun.
   *
   * @throws DeputeError CHECK_TIMEOUT when it was stopped at its limit of time or memory, LIMIT_EXCEEDED when too many
   * wait, SHUTTING_DOWN after `close`, INTERNAL for a fault of our own
   */
  run<J extends Job>(job: J, signal?: AbortSignal): Promise<JobResult<J>> {
    if (this.#closed) return Promise.reject(shuttingDown());
    if (this.#waiting.length >= this.#options.maxWaiting) this.#forgetAborted();
    if (this.#waiting.length >= this.#options.maxWaiting) {
      return Promise.reject(
        new DeputeError(ErrorReason.LIMIT_EXCEEDED, "too many checks wait", {
          metadata: { limit: "waiting_checks", max: String(this.#options.maxWaiting) },
        }),
      );
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ job, signal, resolve: resolve as Pending["resolve"], reject });
      this.#failedStarts = 0;
      while (this.#slots.size < this.#options.size) this.#spawn();
      this.#dispatch();
    });
  }

  /** Refuses what waits and stops what runs. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true;
    const slots = [...this.#slots];
    for (const pending of this.#waiting.splice(0)) pending.reject(shuttingDown());
    for (const slot of slots) this.#end(slot, shuttingDown());
    await Promise.all(slots.map((slot) => slot.worker.terminate()));
  }

  #spawn(): void {
    const worker = new Worker(new URL("./worker.ts", import.meta.url), {
      // Nothing of the process is the business of a check.
      env: {},
      execArgv: [],
      resourceLimits: {
        maxOldGenerationSizeMb: this.#options.memoryMb,
        maxYoungGenerationSizeMb: Math.max(8, Math.floor(this.#options.memoryMb / 8)),
        stackSizeMb: 4,
      },
    });
    const slot: Slot = { worker, ready: false };
    this.#slots.add(slot);
    worker.on("message", (message: WorkerMessage) => this.#onMessage(slot, message));
    worker.on("error", (error) => this.#onLost(slot, error));
    worker.on("exit", () => this.#onLost(slot, new Error("the worker ended")));
  }

  #forgetAborted(): void {
    const waiting = this.#waiting.splice(0);
    for (const pending of waiting) {
      if (pending.signal?.aborted === true) pending.reject(aborted());
      else this.#waiting.push(pending);
    }
  }

  #dispatch(): void {
    for (const slot of this.#slots) {
      if (!slot.ready || slot.current !== undefined) continue;
      const pending = this.#next();
      if (pending === undefined) return;
      const id = ++this.#requests;
      const cancel = this.#options.timers.after(this.#options.jobLimitMs, () => this.#onTimeout(slot));
      slot.current = { id, pending, cancel };
      slot.worker.postMessage({ id, job: pending.job } satisfies WorkerRequest);
    }
  }

  #next(): Pending | undefined {
    for (;;) {
      const pending = this.#waiting.shift();
      if (pending?.signal?.aborted !== true) return pending;
      pending.reject(aborted());
    }
  }

  #onMessage(slot: Slot, message: WorkerMessage): void {
    if ("ready" in message) {
      slot.ready = true;
      this.#failedStarts = 0;
    } else if (slot.current?.id === message.id) {
      const { pending, cancel } = slot.current;
      slot.current = undefined;
      cancel();
      if ("failure" in message) {
        this.#options.onError(new Error(message.failure), "a check failed for a fault of our own");
        pending.reject(new DeputeError(ErrorReason.INTERNAL, "the check could not be run"));
      } else pending.resolve(message.result);
    }
    this.#dispatch();
  }

  #onTimeout(slot: Slot): void {
    this.#end(slot, stopped(`stopped after ${this.#options.jobLimitMs} ms`, this.#options.jobLimitMs));
    void slot.worker.terminate();
    this.#refill();
  }

  #onLost(slot: Slot, error: unknown): void {
    if (!this.#slots.has(slot)) return;
    const outOfMemory = (error as { code?: unknown }).code === "ERR_WORKER_OUT_OF_MEMORY";
    if (!slot.ready) this.#failedStarts += 1;
    if (!outOfMemory) this.#options.onError(error, "a worker of the checker was lost");
    this.#end(
      slot,
      stopped(outOfMemory ? "stopped at its limit of memory" : "it ended", this.#options.jobLimitMs),
    );
    void slot.worker.terminate();
    this.#refill();
  }

  /** Takes a worker out, and settles the job that it ran. */
  #end(slot: Slot, error: DeputeError): void {
    this.#slots.delete(slot);
    slot.current?.cancel();
    slot.current?.pending.reject(error);
    slot.current = undefined;
  }

  #refill(): void {
    if (this.#closed) return;
    if (this.#failedStarts < MAX_FAILED_STARTS) {
      while (this.#slots.size < this.#options.size) this.#spawn();
    } else if (this.#slots.size === 0) {
      const error = new DeputeError(ErrorReason.INTERNAL, "no worker for checks can be started");
      for (const pending of this.#waiting.splice(0)) pending.reject(error);
    }
    this.#dispatch();
  }
}

function stopped(message: string, limitMs: number): DeputeError {
  return new DeputeError(ErrorReason.CHECK_TIMEOUT, `the check did not end: ${message}`, {
    metadata: { limit_ms: String(limitMs) },
  });
}

function shuttingDown(): DeputeError {
  return new DeputeError(ErrorReason.SHUTTING_DOWN, "the verifier shuts down");
}

function aborted(): DeputeError {
  return new DeputeError(ErrorReason.DEADLINE_EXCEEDED, "the caller is gone");
}
