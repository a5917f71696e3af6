import { create, type JsonObject, type JsonValue, toJson } from "@bufbuild/protobuf";
import {
  type Duration,
  durationFromMs,
  durationMs,
  timestampMs,
  type Value,
  ValueSchema,
} from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import {
  TaskFailureSchema,
  TaskQuestionKind,
  TaskQuestionSchema,
  TaskStatus,
} from "@depute/contracts/depute/tasks/v1/task_pb";
import {
  type Assignment,
  type Lease,
  type ProvidedMessage,
  WorkerDirective,
  type WorkerService,
} from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { type Message, MessageSchema } from "@depute/contracts/lf/a2a/v1/a2a_pb";
import { completionCallOf } from "./completion-call.ts";
import type { Completions } from "./completions.ts";
import { toValue } from "./json-value.ts";
import { delay, endsLease, FIRST_BACKOFF_MS, retryUnavailable, untilDecided, withGrace } from "./retry.ts";
import { type QuestionKind, type Work, type WorkContext, WorkFailure, WorkSuspension } from "./work.ts";

/** Milliseconds between heartbeats for an assignment that names no interval. */
const DEFAULT_BEAT_MS = 10_000;

/**
 * Maximum time in milliseconds for which the server may delay its answer to a heartbeat. It is below the server's limit
 * for a call.
 */
const LONGEST_BEAT_MS = 20_000;

/** Maximum time in milliseconds before the first heartbeat. Shorter work sends no heartbeat. */
const FIRST_BEAT_MS = 50;

/** Maximum time in milliseconds that an open heartbeat may take after the work is done. */
const LAST_BEAT_MS = 1_000;

/** Maximum time in milliseconds for which the worker waits for work that continues after its signal has aborted. */
const DEFAULT_ABANDON_MS = 10_000;

/** Timeout in milliseconds of the call that returns a task to the queue. */
const RELEASE_CALL_MS = 10_000;

/** The reason for aborting running work when the worker stops. */
export class Released extends Error {
  override readonly name: string = "Released";
}

/** The reason for aborting running work when the delegator cancels the task with a grace period. */
export class CancelledWithGrace extends Released {
  override readonly name: string = "CancelledWithGrace";
}

/** The reason for aborting running work when its lease has expired because the platform was unreachable. */
export class LeaseLost extends Error {
  override readonly name = "LeaseLost";
}

/** The reason for interrupting work at a checkpoint when the delegator requested the interruption. */
class Interrupted extends Error {
  override readonly name = "Interrupted";
}

/** The dependencies of running work. */
export interface AssignmentDeps {
  readonly calls: Client<typeof WorkerService>;
  readonly work: Work;
  /** Sends small results in batches. If absent, each result is sent alone. */
  readonly completions?: Completions;
  /**
   * Maximum time in milliseconds for which the worker waits for work that continues after its signal has aborted. Then
   * the worker abandons the work: its assignment ends, its result is dropped, and its slot is free. Default: 10,000.
   */
  readonly abandonAfterMs?: number;
}

/**
 * Runs one assignment: begins it, extends its lease, and ends it by the outcome of the work or by the platform's
 * directive.
 *
 * @param stop aborts the work; if the reason is a Released, the task returns to the queue
 */
export async function runAssignment(
  { calls, work, completions, abandonAfterMs = DEFAULT_ABANDON_MS }: AssignmentDeps,
  assignment: Assignment,
  lease: Lease,
  stop: AbortController,
): Promise<void> {
  if (assignment.task === undefined) return;
  const run = new Run(calls, assignment, lease, stop);
  // If the worker is already stopping, the task is returned without being begun.
  if (!stop.signal.aborted) await run.begin();
  const beating = run.keepLease();
  try {
    stop.signal.throwIfAborted();
    const { input } = assignment.task;
    const working = work(input === undefined ? null : toJson(ValueSchema, input), run.context());
    const result = await unlessAbandoned(working, stop.signal, abandonAfterMs);
    stop.signal.throwIfAborted();
    const complete = completionCallOf({ calls, completions }, assignment, lease, result);
    // The lease is extended during the review. Otherwise the result would no longer belong to this attempt.
    await untilDecided(stop.signal, () => run.end(complete));
  } catch (error) {
    await run.endFailed(error);
  } finally {
    run.finish();
    await beating;
  }
}

/** Returns the work's result. Rejects with the signal's reason if the work continues for `limitMs` after the abort. */
function unlessAbandoned<T>(working: Promise<T>, signal: AbortSignal, limitMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const limit = () => {
      timer = setTimeout(() => reject(signal.reason), limitMs);
    };
    const settle = () => {
      signal.removeEventListener("abort", limit);
      clearTimeout(timer);
    };
    if (signal.aborted) limit();
    else signal.addEventListener("abort", limit, { once: true });
    working.then(
      (result) => {
        settle();
        resolve(result);
      },
      (error: unknown) => {
        settle();
        reject(error);
      },
    );
  });
}

/** The reason with which every run's lease ends, because the stack trace of each new one costs time. */
const OVER = new DOMException("The work is over.", "AbortError");

class Run {
  readonly #calls: Client<typeof WorkerService>;
  readonly #assignment: Assignment;
  readonly #lease: Lease;
  readonly #stop: AbortController;
  readonly #interrupting = new AbortController();
  /** Aborts when the work is done, or shall stop. The lease is then no longer extended. */
  readonly #ended = new AbortController();
  #isOver = false;
  /**
   * All answers of the delegator to the task's questions, in order, including those to earlier attempts. `#answered`
   * wakes the work that waits for the next answer.
   */
  readonly #answers: JsonValue[];
  /** The A2A messages of the task, in order. The work has a reference to this list, so messages are only added. */
  readonly #messages: JsonObject[] = [];
  #answered = () => {};
  /** Time at which the worker sent the latest heartbeat that was answered, in milliseconds since the Unix epoch. */
  #heldSinceMs = Date.now();

  constructor(
    calls: Client<typeof WorkerService>,
    assignment: Assignment,
    lease: Lease,
    stop: AbortController,
  ) {
    this.#calls = calls;
    this.#assignment = assignment;
    this.#lease = lease;
    this.#stop = stop;
    this.#answers = assignment.providedInputs.map((answer) => toJson(ValueSchema, answer));
    this.#addMessages(assignment.message, ...assignment.providedMessages.map(({ message }) => message));
  }

  async begin(): Promise<void> {
    if (this.#assignment.task?.status === TaskStatus.RUNNING) return;
    await this.end(() => this.#calls.startAssignment({ lease: this.#lease }));
  }

  /** Makes a call under the lease. Repeats the call while the platform is unreachable. */
  async end<T extends object>(call: () => Promise<T>): Promise<T> {
    return retryUnavailable(this.#stop.signal, () => this.#callUnderLease(call()));
  }

  /** Records that the work is done. From now on, directives and errors of the platform do not abort the work. */
  finish(): void {
    this.#isOver = true;
    this.#ended.abort(OVER);
  }

  /**
   * Awaits a call under the lease. The running work gets the directive in the call's answer, or the error if the
   * error ends the lease.
   */
  async #callUnderLease<T extends object>(call: Promise<T>): Promise<T> {
    try {
      const answer = await call;
      if ("directive" in answer) this.#applyDirective(answer.directive as WorkerDirective);
      return answer;
    } catch (error) {
      if (endsLease(error) && !this.#isOver) this.#stop.abort(error);
      throw error;
    }
  }

  #applyDirective(directive: WorkerDirective): void {
    if (this.#isOver) return;
    if (directive === WorkerDirective.STOP)
      this.#stop.abort(new Error("the task was cancelled; stop the work"));
    if (directive === WorkerDirective.CANCEL)
      this.#stop.abort(new CancelledWithGrace("the task was cancelled; stop the work"));
    if (directive === WorkerDirective.SUSPEND) this.#interrupting.abort(new Interrupted());
  }

  /** Extends the lease and watches it until the work is done. Work that ends before the first heartbeat does neither. */
  async keepLease(): Promise<void> {
    const stopping = this.#stop.signal;
    const onStop = () => this.#ended.abort(stopping.reason);
    if (stopping.aborted) onStop();
    else stopping.addEventListener("abort", onStop, { once: true });
    // At most half of the lease passes before the watch begins.
    await delay(Math.min(FIRST_BEAT_MS, this.#beatMs(), this.#leaseMs() / 2), this.#ended.signal);
    if (!this.#ended.signal.aborted) await Promise.all([this.#extendLease(), this.#watchLease()]);
    stopping.removeEventListener("abort", onStop);
  }

  /** Returns the milliseconds between heartbeats. */
  #beatMs(): number {
    return Math.min(ms(this.#assignment.heartbeatInterval) ?? DEFAULT_BEAT_MS, LONGEST_BEAT_MS);
  }

  /**
   * Extends the lease until the work is done. The server answers a heartbeat when it has an event for the worker, or
   * after the `wait` of the heartbeat. The task's end is such an event, so the client need not cancel an open
   * heartbeat. Servers close connections on which many calls are cancelled.
   */
  async #extendLease(): Promise<void> {
    const beatMs = this.#beatMs();
    const ended = this.#ended.signal;
    while (!ended.aborted) {
      const sinceMs = Date.now();
      const inputsSeen = this.#answers.length;
      const request = { lease: this.#lease, inputsSeen, wait: durationFromMs(beatMs) };
      try {
        const { providedInputs, providedMessages } = await withGrace(LAST_BEAT_MS, ended, (signal) =>
          this.#callUnderLease(this.#calls.heartbeatAssignment(request, { signal })),
        );
        this.#heldSinceMs = sinceMs;
        this.#take(inputsSeen, providedInputs, providedMessages);
        // The next heartbeat confirms the inputs. It waits a turn of the event loop, so that a platform that answers every
        // heartbeat with inputs cannot hold up the process.
        if (providedInputs.length > 0) {
          await delay(0, ended);
          continue;
        }
      } catch {
        await delay(FIRST_BACKOFF_MS, ended);
        continue;
      }
      await delay(beatMs - (Date.now() - sinceMs), ended);
    }
  }

  /**
   * Aborts the work if no heartbeat was answered for the duration of a lease. After that duration another
   * worker may have the task. The local clock measures only durations, so it need not agree with the platform's
   * clock.
   */
  async #watchLease(): Promise<void> {
    const leaseMs = ms(this.#assignment.task?.limits?.heartbeat);
    if (leaseMs === undefined) return;
    const ended = this.#ended.signal;
    const leftOf = () => this.#heldSinceMs + leaseMs - Date.now();
    for (let leftMs = leftOf(); !ended.aborted; leftMs = leftOf()) {
      if (leftMs <= 0)
        this.#stop.abort(
          new LeaseLost("the lease has expired, because no heartbeat was answered; stop the work"),
        );
      else await delay(leftMs, ended);
    }
  }

  /** Returns the milliseconds until the lease expires, by the local clock. */
  #leaseMs(): number {
    const { leaseExpireTime } = this.#assignment;
    return leaseExpireTime === undefined ? Infinity : timestampMs(leaseExpireTime) - Date.now();
  }

  #take(inputsSeen: number, inputs: readonly Value[], messages: readonly ProvidedMessage[]): void {
    if (inputs.length === 0 || inputsSeen !== this.#answers.length) return;
    this.#addMessages(...messages.map(({ message }) => message));
    this.#answers.push(...inputs.map((input) => toJson(ValueSchema, input)));
    this.#answered();
  }

  #addMessages(...messages: readonly (Message | undefined)[]): void {
    for (const message of messages) {
      if (message !== undefined) this.#messages.push(toJson(MessageSchema, message) as JsonObject);
    }
  }

  context(): WorkContext {
    const { task, workerToken, checkpoint, contexts, message } = this.#assignment;
    if (task === undefined) throw new Error("the assignment has no task; check the platform's version");
    const { signal } = this.#stop;
    const lease = this.#lease;
    const calls = this.#calls;
    return {
      task,
      message: message && (toJson(MessageSchema, message) as JsonObject),
      messages: this.#messages,
      workerToken,
      signal,
      interrupting: this.#interrupting.signal,
      saved: checkpoint && toJson(ValueSchema, checkpoint),
      contexts,
      answers: [...this.#answers],
      progress: async (processed, total, message = "", requestId = crypto.randomUUID()) => {
        signal.throwIfAborted();
        const report = { lease, progress: { processed, total, message }, requestId };
        await this.end(() => calls.reportProgress(report));
      },
      partial: async (output, level = "compact", requestId = crypto.randomUUID()) => {
        signal.throwIfAborted();
        const value = toValue(output);
        const report = { lease, output: value, resolvedLevel: level, requestId };
        await this.end(() => calls.reportPartial(report));
      },
      checkpoint: async (state) => {
        const saved = { lease, checkpoint: toValue(state) };
        // Work that is being returned to the queue may still save a checkpoint for the next attempt.
        if (signal.reason instanceof Released) await calls.saveCheckpoint(saved);
        signal.throwIfAborted();
        await this.end(() => calls.saveCheckpoint(saved));
        this.#interrupting.signal.throwIfAborted();
      },
      ask: (prompt, details, kind) => this.#ask(prompt, details, kind),
    };
  }

  async #ask(prompt: string, details?: JsonValue, kind: QuestionKind = "input"): Promise<JsonValue> {
    const { signal } = this.#stop;
    signal.throwIfAborted();
    const answerCount = this.#answers.length;
    const question = create(TaskQuestionSchema, {
      prompt,
      kind: kind === "authorization" ? TaskQuestionKind.AUTHORIZATION : TaskQuestionKind.INPUT,
      ...(details === undefined ? {} : { details: toValue(details) }),
    });
    await this.end(() => this.#calls.requestInput({ lease: this.#lease, question }));
    await new Promise<void>((resolve) => {
      if (this.#answers.length > answerCount || signal.aborted) return resolve();
      this.#answered = resolve;
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    signal.throwIfAborted();
    return this.#answers[answerCount] as JsonValue;
  }

  /** Ends an attempt whose work threw an error. */
  async endFailed(error: unknown): Promise<void> {
    const lease = this.#lease;
    const { signal } = this.#stop;
    if (signal.reason instanceof Released)
      await this.#calls.releaseAssignment({ lease }, { timeoutMs: RELEASE_CALL_MS });
    else if (signal.aborted) return;
    else if (error instanceof Interrupted) await this.end(() => this.#calls.suspendAssignment({ lease }));
    else if (error instanceof WorkSuspension) {
      const checkpoint = error.checkpoint === undefined ? undefined : toValue(error.checkpoint);
      const request = { lease, reason: error.message.slice(0, 1000), ...(checkpoint && { checkpoint }) };
      await this.end(() => this.#calls.suspendAssignment(request));
    } else await this.end(() => this.#calls.failAssignment({ lease, failure: failureOf(error) }));
  }
}

function ms(duration: Duration | undefined): number | undefined {
  return duration === undefined ? undefined : durationMs(duration);
}

function failureOf(error: unknown) {
  const isWorkFailure = error instanceof WorkFailure;
  return create(TaskFailureSchema, {
    reason: isWorkFailure ? error.reason : "WORKER_ERROR",
    message: (error instanceof Error ? error.message : String(error)).slice(0, 2000),
    retryable: isWorkFailure ? error.retryable : true,
  });
}
