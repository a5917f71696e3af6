import type { Client } from "@connectrpc/connect";
import type { WorkerService } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { carryOut, Released } from "./carry-out.ts";
import { Completions } from "./completions.ts";
import { delay, FIRST_BACKOFF_MS, LONGEST_BACKOFF_MS } from "./insist.ts";
import type { Work } from "./work.ts";

export interface WorkerOptions {
  readonly calls: Client<typeof WorkerService>;
  readonly agentId: string;
  readonly work: Work;
  /** A name for this process. */
  readonly worker?: string;
  /** Tasks at a time, 1 when absent. */
  readonly capacity?: number;
  /** Told about what went wrong and is being tried again. */
  readonly onError?: (error: unknown) => void;
}

/** A worker that runs. */
export interface Worker {
  /** Takes no new work, waits for what is running, at most `graceMs`, and gives the rest back. */
  stop(graceMs?: number): Promise<void>;
}

/** Takes assignments for an agent and works on them until it is stopped; re-attaches when the platform was away. */
export function startWorker(options: WorkerOptions): Worker {
  const stopping = new AbortController();
  const running = new Map<Promise<void>, AbortController>();
  const loop = takeAssignments(options, stopping.signal, running);
  return {
    async stop(graceMs = 10_000) {
      stopping.abort();
      await loop;
      const enough = new AbortController();
      const done = Promise.all(running.keys()).then(() => enough.abort());
      await Promise.race([done, delay(graceMs, enough.signal)]);
      for (const released of running.values()) released.abort(new Released());
      await Promise.all(running.keys());
    },
  };
}

async function takeAssignments(
  options: WorkerOptions,
  signal: AbortSignal,
  running: Map<Promise<void>, AbortController>,
): Promise<void> {
  const { calls, agentId, worker = "", capacity = 1, onError = () => {} } = options;
  const completions = new Completions(
    async (requests) => (await calls.batchCompleteAssignments({ requests })).outcomes,
  );
  const hand = { ...options, completions };
  let backoff = FIRST_BACKOFF_MS;
  while (!signal.aborted) {
    try {
      // There is room for whatever comes, so it may as well have begun.
      const request = { agentId, worker, capacity, begin: true };
      for await (const { assignment } of calls.watchAssignments(request, { signal })) {
        backoff = FIRST_BACKOFF_MS;
        if (assignment?.lease === undefined) continue;
        const released = new AbortController();
        // What comes when it takes no more goes back at once.
        if (signal.aborted) released.abort(new Released());
        const done = carryOut(hand, assignment, assignment.lease, released)
          .catch(onError)
          .finally(() => running.delete(done));
        running.set(done, released);
      }
    } catch (error) {
      if (signal.aborted) return;
      onError(error);
    }
    await delay(backoff, signal);
    backoff = Math.min(backoff * 2, LONGEST_BACKOFF_MS);
  }
}
