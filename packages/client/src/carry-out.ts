import { create, type JsonValue, toJson } from "@bufbuild/protobuf";
import {
  type Duration,
  durationFromMs,
  durationMs,
  timestampMs,
  type Value,
  ValueSchema,
} from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import { TaskFailureSchema, TaskQuestionSchema, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import {
  type Assignment,
  type Lease,
  WorkerDirective,
  type WorkerService,
} from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import type { Completions } from "./completions.ts";
import { handIn } from "./hand-in.ts";
import { delay, endsLease, FIRST_BACKOFF_MS, insist, untilDecided, withGrace } from "./insist.ts";
import { toValue } from "./json-value.ts";
import { type Work, type WorkContext, WorkFailure, WorkSuspension } from "./work.ts";

/** How often to beat when the assignment does not say, milliseconds. */
const DEFAULT_BEAT_MS = 10_000;

/** How long a heartbeat is held back at most: within the time that servers give a call, milliseconds. */
const LONGEST_BEAT_MS = 20_000;

/** How long work lasts without a heartbeat at most, milliseconds: what is over sooner does not cost the call. */
const FIRST_BEAT_MS = 50;

/** How long a heartbeat may still take when the work is over, milliseconds. */
const LAST_BEAT_MS = 1_000;

/** The reason that a running piece of work sees when the worker is stopped. */
export class Released extends Error {
  override readonly name: string = "Released";
}

/** The reason that a running piece of work sees when its delegator has called it off and leaves it time to end in order. */
export class CalledOff extends Released {
  override readonly name: string = "CalledOff";
}

/** What the work is interrupted by, at a checkpoint. */
class Interrupted extends Error {
  override readonly name = "Interrupted";
}

/** What work is carried out with. */
export interface WorkAtHand {
  readonly calls: Client<typeof WorkerService>;
  readonly work: Work;
  /** Where small results that nothing may hold up are handed in; each is by itself when absent. */
  readonly completions?: Completions;
}

/**
 * Does one piece of work: begins it, keeps its lease, and ends it as the work ends, or is told to.
 *
 * @param stop ends the work; with a Released, the task is given back
 */
export async function carryOut(
  { calls, work, completions }: WorkAtHand,
  assignment: Assignment,
  lease: Lease,
  stop: AbortController,
): Promise<void> {
  if (assignment.task === undefined) return;
  const run = new Run(calls, assignment, lease, stop);
  // What is given back is not begun before.
  if (!stop.signal.aborted) await run.begin();
  const beating = run.beat();
  try {
    stop.signal.throwIfAborted();
    const { input } = assignment.task;
    const result = await work(input === undefined ? null : toJson(ValueSchema, input), run.context());
    stop.signal.throwIfAborted();
    const complete = handIn({ calls, completions }, assignment, lease, result);
    // The lease is kept meanwhile, so that the result is still this attempt's when somebody has decided.
    await untilDecided(stop.signal, () => run.end(complete));
  } catch (error) {
    await run.giveUp(error);
  } finally {
    run.finish();
    await beating;
  }
}

class Run {
  readonly #calls: Client<typeof WorkerService>;
  readonly #assignment: Assignment;
  readonly #lease: Lease;
  readonly #stop: AbortController;
  readonly #interrupting = new AbortController();
  readonly #over = new AbortController();
  /** The delegator's answers, in their order, and who waits for the next one. */
  readonly #answers: JsonValue[];
  #answered = () => {};

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
  }

  async begin(): Promise<void> {
    if (this.#assignment.task?.status === TaskStatus.RUNNING) return;
    await this.end(() => this.#calls.startAssignment({ lease: this.#lease }));
  }

  /** A call under the lease, tried again while the platform is away. */
  async end<T extends object>(call: () => Promise<T>): Promise<T> {
    return insist(this.#stop.signal, () => this.#under(call()));
  }

  /** Nothing that the platform says from now on concerns the work. */
  finish(): void {
    this.#over.abort();
  }

  /** Whatever the platform says to a call under the lease, it says to the work. */
  async #under<T extends object>(call: Promise<T>): Promise<T> {
    try {
      const answer = await call;
      if ("directive" in answer) this.#heed(answer.directive as WorkerDirective);
      return answer;
    } catch (error) {
      if (endsLease(error) && !this.#over.signal.aborted) this.#stop.abort(error);
      throw error;
    }
  }

  #heed(directive: WorkerDirective): void {
    if (this.#over.signal.aborted) return;
    if (directive === WorkerDirective.STOP) this.#stop.abort(new Error("the task was called off"));
    if (directive === WorkerDirective.CANCEL) this.#stop.abort(new CalledOff("the task was called off"));
    if (directive === WorkerDirective.SUSPEND) this.#interrupting.abort(new Interrupted());
  }

  /**
   * Keeps the lease until the work is over. Each heartbeat is held back until there is something to hear. That the task has
   * ended is; so what is open then is not called off, because servers close connections on which much is.
   */
  async beat(): Promise<void> {
    const beatMs = Math.min(ms(this.#assignment.heartbeatInterval) ?? DEFAULT_BEAT_MS, LONGEST_BEAT_MS);
    const ended = AbortSignal.any([this.#over.signal, this.#stop.signal]);
    await delay(Math.min(FIRST_BEAT_MS, beatMs, this.#leaseMs() / 2), ended);
    while (!ended.aborted) {
      const sinceMs = Date.now();
      const inputsSeen = this.#answers.length;
      const request = { lease: this.#lease, inputsSeen, wait: durationFromMs(beatMs) };
      try {
        const { providedInputs } = await withGrace(LAST_BEAT_MS, ended, (signal) =>
          this.#under(this.#calls.heartbeatAssignment(request, { signal })),
        );
        this.#take(inputsSeen, providedInputs);
        if (providedInputs.length > 0) continue;
      } catch {
        await delay(FIRST_BACKOFF_MS, ended);
        continue;
      }
      await delay(beatMs - (Date.now() - sinceMs), ended);
    }
  }

  /** How long the lease that came with the assignment lasts yet, milliseconds, by this machine's clock. */
  #leaseMs(): number {
    const { leaseExpireTime } = this.#assignment;
    return leaseExpireTime === undefined ? Infinity : timestampMs(leaseExpireTime) - Date.now();
  }

  #take(inputsSeen: number, inputs: readonly Value[]): void {
    if (inputs.length === 0 || inputsSeen !== this.#answers.length) return;
    this.#answers.push(...inputs.map((input) => toJson(ValueSchema, input)));
    this.#answered();
  }

  context(): WorkContext {
    const { task, workerToken, checkpoint, contexts } = this.#assignment;
    if (task === undefined) throw new Error("an assignment of no task");
    const { signal } = this.#stop;
    const lease = this.#lease;
    const calls = this.#calls;
    return {
      task,
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
        // Work that is given back may still leave to the next attempt what it has.
        if (signal.reason instanceof Released) await calls.saveCheckpoint(saved);
        signal.throwIfAborted();
        await this.end(() => calls.saveCheckpoint(saved));
        this.#interrupting.signal.throwIfAborted();
      },
      ask: (prompt, details) => this.#ask(prompt, details),
    };
  }

  async #ask(prompt: string, details: JsonValue | undefined): Promise<JsonValue> {
    const { signal } = this.#stop;
    signal.throwIfAborted();
    const seen = this.#answers.length;
    const question = create(TaskQuestionSchema, {
      prompt,
      ...(details === undefined ? {} : { details: toValue(details) }),
    });
    await this.end(() => this.#calls.requestInput({ lease: this.#lease, question }));
    await new Promise<void>((resolve) => {
      if (this.#answers.length > seen || signal.aborted) return resolve();
      this.#answered = resolve;
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    signal.throwIfAborted();
    return this.#answers[seen] as JsonValue;
  }

  /** Ends work that threw. */
  async giveUp(error: unknown): Promise<void> {
    const lease = this.#lease;
    const { signal } = this.#stop;
    if (signal.reason instanceof Released) await this.#calls.releaseAssignment({ lease });
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
  const known = error instanceof WorkFailure;
  return create(TaskFailureSchema, {
    reason: known ? error.reason : "WORKER_ERROR",
    message: (error instanceof Error ? error.message : String(error)).slice(0, 2000),
    retryable: known ? error.retryable : true,
  });
}
