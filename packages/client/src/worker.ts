import { create, fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { type Client, Code, ConnectError } from "@connectrpc/connect";
import {
  type Task,
  TaskFailureSchema,
  TaskOutputSchema,
  TaskUsageSchema,
} from "@depute/contracts/depute/tasks/v1/task_pb";
import {
  type Assignment,
  type Lease,
  WorkerDirective,
  type WorkerService,
} from "@depute/contracts/depute/tasks/v1/worker_service_pb";

/** What a piece of work is done with. */
export interface WorkContext {
  readonly task: Task;
  /** The DelegateOS token to work under; empty when the delegator gave none. */
  readonly workerToken: string;
  /** Aborts when the task was called off or the lease is lost: stop, nothing more is accepted. */
  readonly signal: AbortSignal;
  /** Says how far the work has come. */
  progress(processed: number, total: number, message?: string): Promise<void>;
  /** Gives a preliminary result. */
  partial(output: JsonValue, level?: "minimal" | "compact" | "full"): Promise<void>;
}

/** What a piece of work gives. */
export interface WorkResult {
  output: JsonValue;
  /** A shorter form of the output. */
  compact?: JsonValue;
  /** The output in a line of text. */
  minimal?: string;
  tokensUsed?: number;
  /** 1 USD is 100,000,000 microcents. */
  costMicrocents?: bigint;
  /** The worker's recorded attestation of the output. */
  attestationId?: string;
}

/** A worker is a function from input to result. What it throws fails the attempt; see WorkFailure. */
export type Work = (input: JsonValue, context: WorkContext) => Promise<WorkResult>;

/** Thrown by work that knows why it fails; anything else thrown is retryable and called WORKER_ERROR. */
export class WorkFailure extends Error {
  /** An upper-case word that programs can act on. */
  readonly reason: string;
  readonly retryable: boolean;

  constructor(reason: string, message: string, retryable: boolean) {
    super(message);
    this.name = "WorkFailure";
    this.reason = reason;
    this.retryable = retryable;
  }
}

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

const FIRST_BACKOFF_MS = 100;
const LONGEST_BACKOFF_MS = 5_000;

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

/** The reason that a running piece of work sees when the worker is stopped. */
class Released extends Error {
  override readonly name = "Released";
}

async function takeAssignments(
  options: WorkerOptions,
  signal: AbortSignal,
  running: Map<Promise<void>, AbortController>,
): Promise<void> {
  const { calls, agentId, worker = "", capacity = 1, onError = () => {} } = options;
  let backoff = FIRST_BACKOFF_MS;
  while (!signal.aborted) {
    try {
      for await (const { assignment } of calls.watchAssignments({ agentId, worker, capacity }, { signal })) {
        backoff = FIRST_BACKOFF_MS;
        if (assignment?.lease === undefined) continue;
        const released = new AbortController();
        const done = carryOut(options, assignment, assignment.lease, released)
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

async function carryOut(
  { calls, work }: WorkerOptions,
  assignment: Assignment,
  lease: Lease,
  stop: AbortController,
): Promise<void> {
  const { task, workerToken, heartbeatInterval } = assignment;
  if (task === undefined) return;
  const { signal } = stop;
  // Whatever the platform says to a call under the lease, it says to the work.
  const under = async <T extends object>(call: Promise<T>): Promise<T> => {
    try {
      const answer = await call;
      if ("directive" in answer && answer.directive === WorkerDirective.STOP)
        stop.abort(new Error("the task was called off"));
      return answer;
    } catch (error) {
      if (endsLease(error)) stop.abort(error);
      throw error;
    }
  };
  await insist(signal, () => under(calls.startAssignment({ lease })));
  const beat = setInterval(
    () => void under(calls.heartbeatAssignment({ lease })).catch(() => {}),
    Number(heartbeatInterval?.seconds ?? 10n) * 1000 + (heartbeatInterval?.nanos ?? 0) / 1e6,
  );
  try {
    const input = task.input === undefined ? null : toJson(ValueSchema, task.input);
    const result = await work(input, {
      task,
      workerToken,
      signal,
      async progress(processed, total, message = "") {
        signal.throwIfAborted();
        const report = { lease, progress: { processed, total, message }, requestId: crypto.randomUUID() };
        await insist(signal, () => under(calls.reportProgress(report)));
      },
      async partial(output, level = "compact") {
        signal.throwIfAborted();
        const value = fromJson(ValueSchema, output);
        const report = { lease, output: value, resolvedLevel: level, requestId: crypto.randomUUID() };
        await insist(signal, () => under(calls.reportPartial(report)));
      },
    });
    signal.throwIfAborted();
    await insist(signal, () => under(calls.completeAssignment({ lease, ...completion(result) })));
  } catch (error) {
    if (signal.reason instanceof Released) await calls.releaseAssignment({ lease });
    else if (!signal.aborted)
      await insist(signal, () => under(calls.failAssignment({ lease, failure: failureOf(error) })));
  } finally {
    clearInterval(beat);
  }
}

function completion(result: WorkResult) {
  const { output, compact, minimal, tokensUsed = 0, costMicrocents = 0n, attestationId = "" } = result;
  return {
    output: create(TaskOutputSchema, {
      full: fromJson(ValueSchema, output),
      ...(compact === undefined ? {} : { compact: fromJson(ValueSchema, compact) }),
      ...(minimal === undefined ? {} : { minimal }),
    }),
    usage: create(TaskUsageSchema, { tokensUsed, costMicrocents }),
    attestationId,
  };
}

function failureOf(error: unknown) {
  const known = error instanceof WorkFailure;
  return create(TaskFailureSchema, {
    reason: known ? error.reason : "WORKER_ERROR",
    message: (error instanceof Error ? error.message : String(error)).slice(0, 2000),
    retryable: known ? error.retryable : true,
  });
}

/**
 * Tries again while the platform is away. Every call here is idempotent, and a lease that was lost meanwhile ends it.
 */
async function insist<T>(signal: AbortSignal, call: () => Promise<T>): Promise<T> {
  for (let backoff = FIRST_BACKOFF_MS; ; backoff = Math.min(backoff * 2, LONGEST_BACKOFF_MS)) {
    try {
      return await call();
    } catch (error) {
      if (signal.aborted || ConnectError.from(error).code !== Code.Unavailable) throw error;
      await delay(backoff, signal);
    }
  }
}

/** Another worker has the task, it has ended, or it may no longer be worked on. */
function endsLease(error: unknown): boolean {
  const { code } = ConnectError.from(error);
  return code === Code.Aborted || code === Code.NotFound || code === Code.PermissionDenied;
}

function delay(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done, { once: true });
    function done() {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    }
  });
}
