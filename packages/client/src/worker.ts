import type { Client } from "@connectrpc/connect";
import type { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import type { Assignment, Lease, WorkerService } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { keepAgentLease } from "./agent-lease.ts";
import { Completions } from "./completions.ts";
import { delay, FIRST_BACKOFF_MS, LONGEST_BACKOFF_MS } from "./retry.ts";
import { Released, runAssignment } from "./run-assignment.ts";
import type { Work } from "./work.ts";

export interface WorkerOptions {
  readonly calls: Client<typeof WorkerService>;
  /** The registry. If it is set, the worker extends the agent's lease while it runs. */
  readonly agents?: Pick<Client<typeof AgentService>, "heartbeatAgent">;
  readonly agentId: string;
  readonly work: Work;
  /** A name for this worker process. */
  readonly worker?: string;
  /** Maximum number of concurrent tasks. Default: 1. */
  readonly capacity?: number;
  /**
   * Maximum time in milliseconds for which the worker waits for work that continues after its signal has aborted.
   * Default: 10,000. After that time the worker drops the work's result and takes other work.
   */
  readonly abandonAfterMs?: number;
  /** Receives errors, e.g. of a broken stream or of a call for an assignment. The worker continues. */
  readonly onError?: (error: unknown) => void;
}

/** A running worker. */
export interface Worker {
  /**
   * Takes no new work, and waits at most `graceMs` milliseconds (default: 10,000) for active work. Then aborts the
   * work's signal, and returns its tasks to the queue. Waits at most `abandonAfterMs` milliseconds more for work that
   * ignores its signal.
   */
  stop(graceMs?: number): Promise<void>;
}

/** Maximum time in milliseconds for ending a stream in an orderly way. After that time the stream is aborted. */
const LEAVE_MS = 2_000;

/** Takes an agent's assignments, and works on them until `stop` is called. Reconnects after an outage. */
export function startWorker(options: WorkerOptions): Worker {
  const running = new Map<Promise<void>, AbortController>();
  const stream = new Stream(options, (assignment, lease) => {
    const released = new AbortController();
    // An assignment that arrives while the worker stops is returned immediately.
    if (stream.isLeaving) released.abort(new Released());
    const workRun = runAssignment(deps, assignment, lease, released)
      .catch(options.onError ?? (() => {}))
      .finally(() => running.delete(workRun));
    running.set(workRun, released);
  });
  const completions = new Completions(
    async (requests) => (await options.calls.batchCompleteAssignments({ requests })).outcomes,
  );
  const deps = { ...options, completions };
  const loop = stream.take();
  const stopped = new AbortController();
  const { agents, agentId, onError = () => {} } = options;
  const lease = agents && keepAgentLease(agents, agentId, stopped.signal, onError);
  return {
    async stop(graceMs = 10_000) {
      await stream.leave();
      stopped.abort();
      await Promise.all([loop, lease]);
      const enough = new AbortController();
      const anyEnded = Promise.all(running.keys()).then(() => enough.abort());
      await Promise.race([anyEnded, delay(graceMs, enough.signal)]);
      for (const released of running.values()) released.abort(new Released());
      await Promise.all(running.keys());
    },
  };
}

/** The stream of an agent's assignments. The worker opens the stream again whenever it ends. */
class Stream {
  readonly #options: WorkerOptions;
  readonly #onAssignment: (assignment: Assignment, lease: Lease) => void;
  readonly #leaving = new AbortController();
  readonly #broken = new AbortController();
  /** The id of the open stream; empty if none is open. */
  #streamId = "";
  #ended: Promise<void> = Promise.resolve();

  constructor(options: WorkerOptions, onAssignment: (assignment: Assignment, lease: Lease) => void) {
    this.#options = options;
    this.#onAssignment = onAssignment;
  }

  /**
   * Whether `leave` was called. The stream is then not opened again, and the worker returns each assignment that still
   * arrives.
   */
  get isLeaving(): boolean {
    return this.#leaving.signal.aborted;
  }

  /** Ends the stream in an orderly way if possible, so that no assignment is lost in transit. */
  async leave(): Promise<void> {
    this.#leaving.abort();
    const ended = new AbortController();
    void this.#ended.then(() => ended.abort());
    const untilMs = Date.now() + LEAVE_MS;
    const { calls, agentId } = this.#options;
    try {
      // Repeats the call, because the platform cannot end a stream that is still opening.
      while (this.#streamId !== "" && Date.now() < untilMs) {
        await calls.endAssignments({ agentId, streamId: this.#streamId }, { timeoutMs: LEAVE_MS });
        await delay(FIRST_BACKOFF_MS, ended.signal);
      }
    } catch {
      // If the call fails, `#broken.abort()` aborts the stream.
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
      // The worker accepts only as many assignments as it can run at once. So the platform may begin each task at
      // its dispatch.
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
