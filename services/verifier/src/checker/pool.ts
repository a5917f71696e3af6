import { Worker } from "node:worker_threads";
import { DeputeError, ErrorReason } from "@depute/core";
import { FairQueue } from "./fair-queue.ts";
import type { Answer, Job, JobResult, WorkerMessage, WorkerRequest, WorkerSetup } from "./jobs.ts";
import { aborted, charsOf, type Pending, shuttingDown, stopped, takeUncancelled } from "./pending-jobs.ts";
import type { JobOptions, PoolOptions } from "./pool-options.ts";
import { QuickJobs } from "./quick-jobs.ts";

interface Slot {
  readonly worker: Worker;
  /** Shared memory: the position of the running job in its request. */
  readonly progress: Int32Array<SharedArrayBuffer>;
  ready: boolean;
  /** The thread's processor time in milliseconds at its last message. */
  usedMs: number;
  /** The jobs that the thread runs: one job, or a batch of quick jobs. Absent while the thread is idle. */
  current?:
    | { id: number; pendings: Pending[]; cancel: () => void; quick: boolean; beginMs: number }
    | undefined;
}

/**
 * Maximum size of a batch of quick jobs, in jobs (MAX_TOGETHER) and in characters (MAX_TOGETHER_CHARS). A batch needs
 * only one message, and a message costs more than most quick jobs.
 */
const MAX_TOGETHER = 16;

const MAX_TOGETHER_CHARS = 256 * 1024;

/** If no job has run for this many milliseconds, the pool ends its threads. An idle thread takes about 35 MB. */
const IDLE_MS = 60_000;

/**
 * Before the pool ends a thread, it asks for the thread's processor time, and waits this many milliseconds for the
 * answer.
 */
const CPU_ANSWER_MS = 100;

/**
 * After this number of consecutive failed starts, the pool starts no thread until the next job arrives. If no thread is
 * left, the pool rejects the waiting jobs.
 */
const MAX_FAILED_STARTS = 3;

/**
 * Runs users' schemas, patterns and checks in worker threads, so that users' code never blocks the event loop. To stop
 * a job at its limit, the pool ends the job's thread and starts another one. Threads start when the first jobs arrive,
 * and end after IDLE_MS without a job.
 */
export class WorkerPool {
  readonly #options: PoolOptions;
  readonly #slots = new Set<Slot>();
  /** The queue of quick jobs. They never wait behind jobs of unknown run time. */
  readonly #quick = new FairQueue<Pending>();
  readonly #unknown = new FairQueue<Pending>();
  readonly #quickJobs = new QuickJobs();
  readonly #threads: number;
  #requests = 0;
  #failedStarts = 0;
  #cancelIdle: (() => void) | undefined;
  #closed = false;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#threads = options.size + 2;
  }

  /** Returns the number of threads. */
  get threads(): number {
    return this.#slots.size;
  }

  /**
   * Runs a job. If `signal` aborts while the job waits, the job never starts. If the queue is full, the pool rejects
   * the newest waiting job of the caller with the most waiting jobs. It rejects this job instead, unless that caller
   * has at least two more waiting jobs than this caller.
   *
   * @throws DeputeError CHECK_TIMEOUT at the limit of time or memory, LIMIT_EXCEEDED if the queue is full,
   * SHUTTING_DOWN after `close`, DEADLINE_EXCEEDED if `signal` aborted before the start, INTERNAL for a fault of the
   * verifier itself
   */
  run<J extends Job>(job: J, { signal, caller, key, onCpu }: JobOptions = {}): Promise<JobResult<J>> {
    if (this.#closed) return Promise.reject(shuttingDown());
    return new Promise((resolve, reject) => {
      const pending = { job, signal, caller, key, onCpu, resolve: resolve as Pending["resolve"], reject };
      const lane = this.#quickJobs.isQuick(key) ? this.#quick : this.#unknown;
      if (!this.#makeRoom(lane, caller ?? "")) {
        reject(this.#tooMany());
        return;
      }
      lane.push(caller ?? "", pending);
      this.#cancelIdle?.();
      this.#cancelIdle = undefined;
      this.#failedStarts = 0;
      this.#grow();
      this.#dispatch();
    });
  }

  /** Rejects waiting jobs and stops running jobs. Repeated calls have no effect. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelIdle?.();
    const slots = [...this.#slots];
    this.#refuseWaiting(shuttingDown());
    for (const slot of slots) this.#end(slot, shuttingDown());
    await Promise.all(slots.map((slot) => slot.worker.terminate()));
  }

  #spawn(): void {
    const progress = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
    const worker = new Worker(new URL("./worker.ts", import.meta.url), {
      workerData: { progress, checks: this.#options.checks ?? "" } satisfies WorkerSetup,
      // The worker's environment is empty, so that checks cannot read the variables of the process.
      env: {},
      execArgv: [],
      resourceLimits: {
        maxOldGenerationSizeMb: this.#options.memoryMb,
        maxYoungGenerationSizeMb: Math.max(8, Math.floor(this.#options.memoryMb / 8)),
        stackSizeMb: 4,
      },
    });
    const slot: Slot = { worker, progress, ready: false, usedMs: 0 };
    this.#slots.add(slot);
    worker.on("message", (message: WorkerMessage) => this.#onMessage(slot, message));
    worker.on("error", (error) => this.#onLost(slot, error));
    worker.on("exit", () => this.#onLost(slot, new Error("the worker thread exited")));
  }

  /** Starts missing threads one at a time, because each start takes CPU time from running jobs. */
  #grow(): void {
    const starts = [...this.#slots].some(({ ready }) => !ready);
    if (!starts && !this.#closed && this.#slots.size < this.#threads) this.#spawn();
  }

  /** If no job runs or waits, schedules the end of all threads after IDLE_MS. */
  #awaitIdle(): void {
    if (this.#closed || this.#cancelIdle !== undefined || !this.#isIdle()) return;
    this.#cancelIdle = this.#options.timers.after(IDLE_MS, () => {
      this.#cancelIdle = undefined;
      const slots = [...this.#slots];
      this.#slots.clear();
      for (const { worker } of slots) void worker.terminate();
    });
  }

  #isIdle(): boolean {
    const isWaiting = this.#quick.size + this.#unknown.size > 0;
    return !isWaiting && [...this.#slots].every(({ ready, current }) => ready && current === undefined);
  }

  /** Makes room in the queue for one more job of this caller. Returns false if the queue is still full. */
  #makeRoom(lane: FairQueue<Pending>, caller: string): boolean {
    if (this.#quick.size + this.#unknown.size < this.#options.maxWaiting) return true;
    for (const each of [this.#quick, this.#unknown]) {
      for (const abortedJob of each.remove(({ signal }) => signal?.aborted === true))
        abortedJob.reject(aborted());
    }
    if (this.#quick.size + this.#unknown.size < this.#options.maxWaiting) return true;
    const largest = lane.largestOwner();
    if (largest === undefined || largest.size <= lane.sizeOf(caller) + 1) return false;
    lane.dropLast(largest.owner)?.reject(this.#tooMany());
    return true;
  }

  #tooMany(): DeputeError {
    return new DeputeError(ErrorReason.LIMIT_EXCEEDED, "the queue of checks is full; try again later", {
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
      slot.current = { id, pendings, cancel, quick, beginMs: this.#options.clock.monotonic() };
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
    // Maximum number of threads for one caller's jobs of unknown run time. If there are several threads, one remains
    // for other callers.
    const most = Math.max(1, this.#options.size - 1);
    const mayServe = (owner: string) =>
      owner === "" || unknown.filter(({ pendings }) => pendings[0]?.caller === owner).length < most;
    const other = takeUncancelled(this.#unknown, mayServe);
    return other === undefined ? undefined : { pendings: [other], quick: false };
  }

  #takeQuick(): Pending[] {
    const batch: Pending[] = [];
    // Takes at most half of the waiting jobs, so that a second thread gets jobs too.
    const most = Math.min(MAX_TOGETHER, Math.ceil(this.#quick.size / 2));
    for (let chars = 0; batch.length < most && chars < MAX_TOGETHER_CHARS; ) {
      const pending = takeUncancelled(this.#quick, () => true);
      if (pending === undefined) break;
      chars += charsOf(pending.job);
      batch.push(pending);
    }
    return batch;
  }

  #onMessage(slot: Slot, message: WorkerMessage): void {
    slot.usedMs = message.usedMs;
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
    this.#awaitIdle();
  }

  #settle({ key, onCpu, resolve, reject }: Pending, answer: Answer | undefined): void {
    onCpu?.(answer?.cpuMs ?? 0);
    this.#quickJobs.record(key, answer?.ms ?? 0);
    if (answer !== undefined && "result" in answer) {
      resolve(answer.result);
      return;
    }
    this.#options.onError(new Error(answer?.failure ?? "no answer"), "check failed unexpectedly");
    reject(
      new DeputeError(
        ErrorReason.INTERNAL,
        "the check failed unexpectedly; the verifier's log has the cause",
      ),
    );
  }

  #onTimeout(slot: Slot): void {
    const { jobLimitMs } = this.#options;
    const stoppedJob = this.#end(slot, stopped(`stopped after ${jobLimitMs} ms`, jobLimitMs));
    void this.#terminate(slot, stoppedJob);
    this.#refill();
  }

  #onLost(slot: Slot, error: unknown): void {
    if (!this.#slots.has(slot)) return;
    const outOfMemory = (error as { code?: unknown }).code === "ERR_WORKER_OUT_OF_MEMORY";
    if (!slot.ready) this.#failedStarts += 1;
    if (!outOfMemory) this.#options.onError(error, "a worker thread of the checker ended");
    const lostJob = this.#end(
      slot,
      stopped(
        outOfMemory ? "stopped at the memory limit" : "its worker thread exited",
        this.#options.jobLimitMs,
      ),
    );
    void this.#terminate(slot, lostJob);
    this.#refill();
  }

  /** Ends a thread, and reports the processor time of the job that it ran. */
  async #terminate(
    { worker, usedMs }: Slot,
    job: { pending: Pending; ranMs: number } | undefined,
  ): Promise<void> {
    if (job?.pending.onCpu !== undefined) {
      const nowMs = await this.#cpuOf(worker);
      // If the thread does not answer, the run time counts as processor time, because the thread ran without a pause.
      job.pending.onCpu(nowMs === undefined ? job.ranMs : Math.max(0, nowMs - usedMs));
    }
    await worker.terminate();
  }

  /** Returns the processor time of a thread in milliseconds; undefined if the thread does not answer in time. */
  async #cpuOf(worker: Worker): Promise<number | undefined> {
    const told = worker.cpuUsage().then(
      ({ user, system }) => (user + system) / 1000,
      () => undefined,
    );
    return new Promise((resolve) => {
      const cancel = this.#options.timers.after(CPU_ANSWER_MS, () => resolve(undefined));
      void told.then(resolve).finally(cancel);
    });
  }

  /**
   * Removes a worker and rejects the job that it is running. The other jobs of the same batch return to the queue.
   *
   * @returns the rejected job, with its run time in milliseconds
   */
  #end(slot: Slot, error: DeputeError): { pending: Pending; ranMs: number } | undefined {
    this.#slots.delete(slot);
    const { current } = slot;
    slot.current = undefined;
    if (current === undefined) return undefined;
    current.cancel();
    const culprit = Atomics.load(slot.progress, 0);
    for (const [i, pending] of current.pendings.entries()) {
      if (i === culprit && !this.#closed) this.#quickJobs.record(pending.key, Number.POSITIVE_INFINITY);
      if (i === culprit || this.#closed) pending.reject(error);
      else this.#unknown.push(pending.caller ?? "", pending);
    }
    const pending = current.pendings[culprit];
    return pending && { pending, ranMs: this.#options.clock.monotonic() - current.beginMs };
  }

  #refill(): void {
    if (this.#closed) return;
    if (this.#failedStarts < MAX_FAILED_STARTS) {
      this.#grow();
    } else if (this.#slots.size === 0) {
      const error = new DeputeError(
        ErrorReason.INTERNAL,
        "the verifier cannot start a worker thread; its log has the cause",
      );
      this.#refuseWaiting(error);
    }
    this.#dispatch();
  }
}
