import type { Client } from "@connectrpc/connect";
import type { Assignment, Lease, WorkerService } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
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

/** How long a stream may take to end in order, milliseconds; then it is broken off. */
const LEAVE_MS = 2_000;

/** Takes assignments for an agent and works on them until it is stopped; re-attaches when the platform was away. */
export function startWorker(options: WorkerOptions): Worker {
  const running = new Map<Promise<void>, AbortController>();
  const stream = new Stream(options, (assignment, lease) => {
    const released = new AbortController();
    // What comes when it takes no more goes back at once.
    if (stream.isLeaving) released.abort(new Released());
    const done = carryOut(hand, assignment, lease, released)
      .catch(options.onError ?? (() => {}))
      .finally(() => running.delete(done));
    running.set(done, released);
  });
  const completions = new Completions(
    async (requests) => (await options.calls.batchCompleteAssignments({ requests })).outcomes,
  );
  const hand = { ...options, completions };
  const loop = stream.take();
  return {
    async stop(graceMs = 10_000) {
      await stream.leave();
      await loop;
      const enough = new AbortController();
      const done = Promise.all(running.keys()).then(() => enough.abort());
      await Promise.race([done, delay(graceMs, enough.signal)]);
      for (const released of running.values()) released.abort(new Released());
      await Promise.all(running.keys());
    },
  };
}

/** The stream of an agent's work, opened again whenever it ends. */
class Stream {
  readonly #options: WorkerOptions;
  readonly #onAssignment: (assignment: Assignment, lease: Lease) => void;
  readonly #leaving = new AbortController();
  readonly #broken = new AbortController();
  /** The name of the stream that is open; empty while none is. */
  #streamId = "";
  #ended: Promise<void> = Promise.resolve();

  constructor(options: WorkerOptions, onAssignment: (assignment: Assignment, lease: Lease) => void) {
    this.#options = options;
    this.#onAssignment = onAssignment;
  }

  /** Whether it takes no more. */
  get isLeaving(): boolean {
    return this.#leaving.signal.aborted;
  }

  /** Ends in order if that can be done, so that nothing that is on its way gets lost. */
  async leave(): Promise<void> {
    this.#leaving.abort();
    const ended = new AbortController();
    void this.#ended.then(() => ended.abort());
    const untilMs = Date.now() + LEAVE_MS;
    const { calls, agentId } = this.#options;
    try {
      // A stream that is only being opened is not there to be ended yet.
      while (this.#streamId !== "" && Date.now() < untilMs) {
        await calls.endAssignments({ agentId, streamId: this.#streamId }, { timeoutMs: LEAVE_MS });
        await delay(FIRST_BACKOFF_MS, ended.signal);
      }
    } catch {
      // Then it is broken off.
    }
    this.#broken.abort();
  }

  async take(): Promise<void> {
    const { onError = () => {} } = this.#options;
    let backoff = FIRST_BACKOFF_MS;
    while (!this.isLeaving) {
      const opening = this.#follow(() => {
        backoff = FIRST_BACKOFF_MS;
      });
      this.#ended = opening.catch(() => {});
      try {
        await opening;
      } catch (error) {
        if (this.isLeaving) return;
        onError(error);
      }
      await delay(backoff, this.#leaving.signal);
      backoff = Math.min(backoff * 2, LONGEST_BACKOFF_MS);
    }
  }

  async #follow(onWork: () => void): Promise<void> {
    const { calls, agentId, worker = "", capacity = 1 } = this.#options;
    this.#streamId = crypto.randomUUID();
    try {
      // There is room for whatever comes, so it may as well have begun.
      const request = { agentId, worker, capacity, begin: true, streamId: this.#streamId };
      for await (const { assignment } of calls.watchAssignments(request, { signal: this.#broken.signal })) {
        onWork();
        if (assignment?.lease !== undefined) this.#onAssignment(assignment, assignment.lease);
      }
    } finally {
      this.#streamId = "";
    }
  }
}
