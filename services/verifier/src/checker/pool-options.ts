import type { Clock, Timers } from "@depute/core";

export interface PoolOptions {
  /**
   * Number of threads for jobs of unknown run time. Each thread runs one job at a time. The pool has one more thread
   * for quick jobs. While the pool replaces a stopped thread, a spare thread runs jobs in its place.
   */
  readonly size: number;
  /** Maximum run time of one job in milliseconds, without its time in the queue. */
  readonly jobLimitMs: number;
  /** Maximum number of jobs in the queues. */
  readonly maxWaiting: number;
  /** Maximum heap of one worker in megabytes. */
  readonly memoryMb: number;
  /** Path of a module with additional checks (see loadChecks); empty without such a module. */
  readonly checks?: string;
  readonly clock: Clock;
  readonly timers: Timers;
  /**
   * Called when a worker thread ends unexpectedly, and when a job ends with an unexpected error. Not called if a job
   * reaches its limit of time or memory.
   */
  readonly onError: (error: unknown, message: string) => void;
}

/** The options of one job. */
export interface JobOptions {
  readonly signal?: AbortSignal;
  /**
   * The caller's principal. The pool limits each caller's share of the threads. Absent for the platform's own calls,
   * because these serve many callers.
   */
  readonly caller?: string | undefined;
  /** Identifies the schema or rule. Jobs with the same schema or rule have the same key, whatever their value. */
  readonly key?: string;
  /** Called once with the processor time in milliseconds that the job used, even if the pool stopped the job. */
  readonly onCpu?: ((ms: number) => void) | undefined;
}
