import { Worker } from "node:worker_threads";
import { DeputeError, ErrorReason, type Timers } from "@depute/core";
import { FairQueue } from "./fair-queue.ts";
import type { Answer, Job, JobResult, WorkerMessage, WorkerRequest, WorkerSetup } from "./jobs.ts";
import { Reputation } from "./reputation.ts";

export interface PoolOptions {
  /**
   * Jobs that run at once and are not known to be quick; each in a thread of its own. One more thread is kept for those
   * that are, and one in reserve, so that nobody waits for the start of a thread that takes a stopped one's place.
   */
  readonly size: number;
  /** Milliseconds that one job may run; waiting for a worker does not count. */
  readonly jobLimitMs: number;
  /** Jobs that may wait for a worker. */
  readonly maxWaiting: number;
  /** Megabytes of heap of one worker. */
  readonly memoryMb: number;
  /** A module with more checks, see loadChecks; empty for none. */
  readonly checks?: string;
  readonly timers: Timers;
  /** Told when a worker was lost, not when a job reached its limit. */
  readonly onError: (error: unknown, what: string) => void;
}

/** Who wants a job done, and what is known of it. */
export interface JobOptions {
  readonly signal?: AbortSignal;
  /**
   * Whose it is: callers are served in turn, and one alone does not get all threads. Absent for the platform's own
   * calls, which stand for many.
   */
  readonly caller?: string | undefined;
  /** What is run, whatever the value: the same key for the same schema. */
  readonly key?: string;
}

interface Pending {
  readonly job: Job;
  readonly signal: AbortSignal | undefined;
  readonly caller: string | undefined;
  readonly key: string | undefined;
  resolve(result: JobResult): void;
  reject(error: Error): void;
}

interface Slot {
  readonly worker: Worker;
  /** Place of the job that it runs. */
  readonly progress: Int32Array<SharedArrayBuffer>;
  ready: boolean;
  /** What it runs: one job, or several that are known to be quick. */
  current?: { id: number; pendings: Pending[]; cancel: () => void; quick: boolean } | undefined;
}

/** Quick jobs that go to a thread together, and their characters: handing over costs more than most of them. */
const MAX_TOGETHER = 16;
const MAX_TOGETHER_CHARS = 256 * 1024;

/** How often in a row a worker may fail to start before jobs are refused. */
const MAX_FAILED_STARTS = 3;

/**
 * Worker threads for what users wrote. The event loop of the service is never held by a schema or a pattern: a job
 * that does not end in time ends with its thread, which is replaced.
 */
export class WorkerPool {
  readonly #options: PoolOptions;
  readonly #slots = new Set<Slot>();
  /** Apart, so that neither stands in the other's way. */
  readonly #quick = new FairQueue<Pending>();
  readonly #unknown = new FairQueue<Pending>();
  readonly #reputation = new Reputation();
  readonly #threads: number;
  #requests = 0;
  #failedStarts = 0;
  #closed = false;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#threads = options.size + 2;
    this.#spawn();
  }

  /**
   * Runs a job. One whose `signal` has aborted while it waited is not begun. When too many wait, the one that the
   * greediest caller asked for last is refused.
   *
   * @throws DeputeError CHECK_TIMEOUT when it was stopped at its limit of time or memory, LIMIT_EXCEEDED when too many
   * wait, SHUTTING_DOWN after `close`, INTERNAL for a fault of our own
   */
  run<J extends Job>(job: J, { signal, caller, key }: JobOptions = {}): Promise<JobResult<J>> {
    if (this.#closed) return Promise.reject(shuttingDown());
    return new Promise((resolve, reject) => {
      const pending = { job, signal, caller, key, resolve: resolve as Pending["resolve"], reject };
      const lane = this.#reputation.isQuick(key) ? this.#quick : this.#unknown;
      if (!this.#makeRoom(lane, caller ?? "")) {
        reject(this.#tooMany());
        return;
      }
      lane.push(caller ?? "", pending);
      this.#failedStarts = 0;
      this.#grow();
      this.#dispatch();
    });
  }

  /** Refuses what waits and stops what runs. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true;
    const slots = [...this.#slots];
    this.#refuseWaiting(shuttingDown());
    for (const slot of slots) this.#end(slot, shuttingDown());
    await Promise.all(slots.map((slot) => slot.worker.terminate()));
  }

  #spawn(): void {
    const progress = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
    const worker = new Worker(new URL("./worker.ts", import.meta.url), {
      workerData: { progress, checks: this.#options.checks ?? "" } satisfies WorkerSetup,
      // Nothing of the process is the business of a check.
      env: {},
      execArgv: [],
      resourceLimits: {
        maxOldGenerationSizeMb: this.#options.memoryMb,
        maxYoungGenerationSizeMb: Math.max(8, Math.floor(this.#options.memoryMb / 8)),
        stackSizeMb: 4,
      },
    });
    const slot: Slot = { worker, progress, ready: false };
    this.#slots.add(slot);
    worker.on("message", (message: WorkerMessage) => this.#onMessage(slot, message));
    worker.on("error", (error) => this.#onLost(slot, error));
    worker.on("exit", () => this.#onLost(slot, new Error("the worker ended")));
  }

  /** Starts what is missing of the threads, one after the other: starting takes the machine's time from what runs. */
  #grow(): void {
    const starts = [...this.#slots].some(({ ready }) => !ready);
    if (!starts && !this.#closed && this.#slots.size < this.#threads) this.#spawn();
  }

  /** Whether one more of this caller may wait. */
  #makeRoom(lane: FairQueue<Pending>, caller: string): boolean {
    if (this.#quick.size + this.#unknown.size < this.#options.maxWaiting) return true;
    for (const each of [this.#quick, this.#unknown]) {
      for (const gone of each.remove(({ signal }) => signal?.aborted === true)) gone.reject(aborted());
    }
    if (this.#quick.size + this.#unknown.size < this.#options.maxWaiting) return true;
    const greediest = lane.greediest();
    if (greediest === undefined || greediest.size <= lane.sizeOf(caller) + 1) return false;
    lane.dropLast(greediest.owner)?.reject(this.#tooMany());
    return true;
  }

  #tooMany(): DeputeError {
    return new DeputeError(ErrorReason.LIMIT_EXCEEDED, "too many checks wait", {
      metadata: { limit: "waiting_checks", max: String(this.#options.maxWaiting) },
    });
  }

  #refuseWaiting(error: DeputeError): void {
    for (const lane of [this.#quick, this.#unknown]) {
      for (const pending of lane.remove(() => true)) pending.reject(error);
    }
  }

  #dispatch(): void {
    for (const slot of this.#slots) {
      if (!slot.ready || slot.current !== undefined) continue;
      const next = this.#next();
      if (next === undefined) return;
      const { pendings, quick } = next;
      const id = ++this.#requests;
      const cancel = this.#options.timers.after(this.#options.jobLimitMs, () => this.#onTimeout(slot));
      slot.current = { id, pendings, cancel, quick };
      Atomics.store(slot.progress, 0, 0);
      slot.worker.postMessage({ id, jobs: pendings.map(({ job }) => job) } satisfies WorkerRequest);
    }
  }

  #next(): { pendings: Pending[]; quick: boolean } | undefined {
    const running = [...this.#slots].flatMap(({ current }) => (current === undefined ? [] : [current]));
    if (running.length > this.#options.size) return undefined;
    const together = this.#takeQuick();
    if (together.length > 0) return { pendings: together, quick: true };
    const unknown = running.filter(({ quick }) => !quick);
    if (unknown.length >= this.#options.size) return undefined;
    // One caller alone leaves a thread to the others.
    const most = Math.max(1, this.#options.size - 1);
    const mayServe = (owner: string) =>
      owner === "" || unknown.filter(({ pendings }) => pendings[0]?.caller === owner).length < most;
    const other = takeLive(this.#unknown, mayServe);
    return other === undefined ? undefined : { pendings: [other], quick: false };
  }

  #takeQuick(): Pending[] {
    const taken: Pending[] = [];
    // Half of what waits, so that a second thread has work as well.
    const most = Math.min(MAX_TOGETHER, Math.ceil(this.#quick.size / 2));
    for (let chars = 0; taken.length < most && chars < MAX_TOGETHER_CHARS; ) {
      const pending = takeLive(this.#quick, () => true);
      if (pending === undefined) break;
      chars += charsOf(pending.job);
      taken.push(pending);
    }
    return taken;
  }

  #onMessage(slot: Slot, message: WorkerMessage): void {
    if ("ready" in message) {
      slot.ready = true;
      this.#failedStarts = 0;
      this.#grow();
    } else if (slot.current?.id === message.id) {
      const { pendings, cancel } = slot.current;
      slot.current = undefined;
      cancel();
      for (const [i, pending] of pendings.entries()) this.#settle(pending, message.answers[i]);
    }
    this.#dispatch();
  }

  #settle({ key, resolve, reject }: Pending, answer: Answer | undefined): void {
    this.#reputation.ran(key, answer?.ms ?? 0);
    if (answer !== undefined && "result" in answer) {
      resolve(answer.result);
      return;
    }
    this.#options.onError(new Error(answer?.failure ?? "no answer"), "a check failed for a fault of our own");
    reject(new DeputeError(ErrorReason.INTERNAL, "the check could not be run"));
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

  /** Takes a worker out, and settles the job that it ran; those that went along with it wait once more. */
  #end(slot: Slot, error: DeputeError): void {
    this.#slots.delete(slot);
    const { current } = slot;
    slot.current = undefined;
    if (current === undefined) return;
    current.cancel();
    const culprit = Atomics.load(slot.progress, 0);
    for (const [i, pending] of current.pendings.entries()) {
      if (i === culprit && !this.#closed) this.#reputation.ran(pending.key, Number.POSITIVE_INFINITY);
      if (i === culprit || this.#closed) pending.reject(error);
      else this.#unknown.push(pending.caller ?? "", pending);
    }
  }

  #refill(): void {
    if (this.#closed) return;
    if (this.#failedStarts < MAX_FAILED_STARTS) {
      this.#grow();
    } else if (this.#slots.size === 0) {
      const error = new DeputeError(ErrorReason.INTERNAL, "no worker for checks can be started");
      this.#refuseWaiting(error);
    }
    this.#dispatch();
  }
}

function charsOf(job: Job): number {
  switch (job.kind) {
    case "compile":
      return job.items.length;
    case "verify":
      return job.judgement.length + job.output.length;
    case "validate":
      return job.schema.length + (job.value?.length ?? 0);
    case "canonical":
      return job.text.length;
  }
}

/** The next whose caller has not gone. */
function takeLive(lane: FairQueue<Pending>, mayServe: (owner: string) => boolean): Pending | undefined {
  for (;;) {
    const pending = lane.take(mayServe);
    if (pending?.signal?.aborted !== true) return pending;
    pending.reject(aborted());
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
