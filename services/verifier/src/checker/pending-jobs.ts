import { DeputeError, ErrorReason } from "@depute/core";
import type { FairQueue } from "./fair-queue.ts";
import type { Job, JobResult } from "./jobs.ts";

/** A job that waits or runs, with the promise that it settles. */
export interface Pending {
  readonly job: Job;
  readonly signal: AbortSignal | undefined;
  readonly caller: string | undefined;
  readonly key: string | undefined;
  readonly onCpu: ((ms: number) => void) | undefined;
  resolve(result: JobResult): void;
  reject(error: Error): void;
}

/** Returns the number of characters of a job, as a measure of its message. */
export function charsOf(job: Job): number {
  switch (job.kind) {
    case "compile":
      return job.items.length;
    case "verify":
      return job.outputRule.length + job.output.length;
    case "validate":
      return job.schema.length + (job.value?.length ?? 0);
    case "canonical":
      return job.text.length;
  }
}

/** Takes the next job that its caller has not cancelled. Rejects the cancelled jobs before it. */
export function takeUncancelled(
  lane: FairQueue<Pending>,
  mayServe: (owner: string) => boolean,
): Pending | undefined {
  for (;;) {
    const pending = lane.take(mayServe);
    if (pending?.signal?.aborted !== true) return pending;
    pending.reject(aborted());
  }
}

export function stopped(message: string, limitMs: number): DeputeError {
  return new DeputeError(ErrorReason.CHECK_TIMEOUT, `the check did not finish: ${message}`, {
    metadata: { limit_ms: String(limitMs) },
  });
}

export function shuttingDown(): DeputeError {
  return new DeputeError(ErrorReason.SHUTTING_DOWN, "the verifier is shutting down; try again");
}

export function aborted(): DeputeError {
  return new DeputeError(ErrorReason.DEADLINE_EXCEEDED, "the call ended");
}
