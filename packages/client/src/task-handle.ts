import type { JsonValue } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { type Task, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { DeputeClients } from "./clients.ts";
import { toValue } from "./json-value.ts";
import { Attempts } from "./outage.ts";
import { type Plain, plain } from "./plain.ts";
import { TaskError } from "./reasons.ts";
import { stateOf, type TaskUpdate, updateOf } from "./task-update.ts";

/** Maximum time in milliseconds that one call waits for the end of a task. It is below the server's limit. */
const WAIT_MS = 20_000;

/** The result of a completed task. */
export interface TaskResult {
  /** The result, exactly as the worker sent it. */
  readonly output: JsonValue;
  /** A shorter form of the result, if the worker supplied one. */
  readonly compact: JsonValue | undefined;
  /** The result in one line of text, if the worker supplied one. */
  readonly minimal: string | undefined;
  readonly tokensUsed: number;
  /** The cost of the task. 1 USD is 100,000,000 microcents. */
  readonly costMicrocents: number;
  /** The verification of the result under the task's contract; undefined for a task without a contract. */
  readonly verification: Plain<Task>["verification"];
  /** Id of the worker's attestation; empty for none. */
  readonly attestationId: string;
}

/** Limits a wait by an abort signal. */
export interface Waiting {
  readonly signal?: AbortSignal;
}

/** Reads and controls one task of the caller. */
export class TaskHandle {
  readonly id: string;
  readonly #clients: DeputeClients;
  readonly #maxOutageMs: number;

  /** @param maxOutageMs maximum duration in milliseconds of an outage that `events` waits for */
  constructor(id: string, clients: DeputeClients, maxOutageMs: number) {
    this.id = id;
    this.#clients = clients;
    this.#maxOutageMs = maxOutageMs;
  }

  /**
   * Yields the events of the task, from the first to the last. If the stream breaks, continues after the last event
   * received, so no event is missing or repeated.
   *
   * @param after the sequence of the last event that the caller already has
   */
  async *events({
    after = 0,
    signal,
  }: Waiting & { readonly after?: number } = {}): AsyncGenerator<TaskUpdate> {
    const attempts = new Attempts(this.#maxOutageMs);
    for (let cursor = BigInt(after); ; ) {
      try {
        const request = { taskId: this.id, afterSequence: cursor };
        for await (const { taskEvent } of this.#clients.tasks.watchTask(request, {
          ...(signal && { signal }),
        })) {
          attempts.succeeded();
          if (taskEvent === undefined) continue;
          cursor = taskEvent.sequence;
          const update = updateOf(taskEvent);
          if (update !== undefined) yield update;
        }
      } catch (error) {
        await attempts.failed(error, signal);
        continue;
      }
      // A stream may end because the server drains, so the task's record shows whether the task has ended.
      const { endTime, lastSequence = 0n } = await this.read();
      if (endTime !== undefined && cursor >= lastSequence) return;
      await attempts.failed(
        new ConnectError("the stream ended before the task ended; open it again", Code.Unavailable),
        signal,
      );
    }
  }

  /**
   * Waits until the task ends, and returns the result.
   *
   * @throws TaskError when the task ends without a result; ConnectError when the platform refuses the call
   */
  async result({ signal }: Waiting = {}): Promise<TaskResult> {
    for (;;) {
      const request = { taskId: this.id, timeout: durationFromMs(WAIT_MS) };
      const { task } = await this.#clients.tasks.waitTask(request, { ...(signal && { signal }) });
      if (task?.endTime !== undefined) return resultOf(task);
    }
  }

  /**
   * Reads the current state of the task.
   *
   * @throws ConnectError if the call fails, e.g. with the reason TASK_NOT_FOUND
   */
  async read(): Promise<Task> {
    const { task } = await this.#clients.tasks.getTask({ taskId: this.id });
    if (task === undefined) throw new Error("the answer has no task; check the platform's version");
    return task;
  }

  /**
   * Cancels the task immediately. With `graceMs`, the worker has that many milliseconds to end its work in an
   * orderly way.
   */
  async cancel(reason = "", { graceMs = 0 }: { readonly graceMs?: number } = {}): Promise<void> {
    const grace = durationFromMs(graceMs);
    await this.#clients.tasks.cancelTask({ taskId: this.id, reason, ...(graceMs > 0 && { grace }) });
  }

  /** Asks the worker to save a checkpoint and then to stop its work on the task. */
  async suspend(reason = ""): Promise<void> {
    await this.#clients.tasks.suspendTask({ taskId: this.id, reason });
  }

  /** Resumes a suspended task from its checkpoint. */
  async resume(): Promise<void> {
    await this.#clients.tasks.resumeTask({ taskId: this.id });
  }

  /** Answers the worker's question. */
  async provideInput(input: JsonValue): Promise<void> {
    await this.#clients.tasks.provideInput({ taskId: this.id, input: toValue(input) });
  }
}

function resultOf(task: Task): TaskResult {
  const { status, failure, output, usage, verification, attestationId } = plain(task);
  if (status !== TaskStatus.COMPLETED) {
    const unknown = { reason: stateOf(status), message: "", retryable: false };
    throw new TaskError(stateOf(status), failure ?? unknown);
  }
  return {
    output: output?.full ?? null,
    compact: output?.compact,
    minimal: output?.minimal,
    tokensUsed: usage?.tokensUsed ?? 0,
    costMicrocents: usage?.costMicrocents ?? 0,
    verification,
    attestationId,
  };
}
