import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import type {
  CompleteAssignmentRequestSchema,
  CompletionOutcome,
} from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import type { Status } from "@depute/contracts/google/rpc/status_pb";

/** Results in one call at most; the contract's limit. */
const MAX_AT_ONCE = 100;

export type Completion = MessageInitShape<typeof CompleteAssignmentRequestSchema>;

interface Waiting {
  readonly completion: Completion;
  readonly group: string;
  readonly resolve: (status: TaskStatus) => void;
  readonly reject: (error: unknown) => void;
}

/** Hands in together the results that are there at the same time: much short work costs few calls. */
export class Completions {
  readonly #send: (requests: Completion[]) => Promise<readonly CompletionOutcome[]>;
  #waiting: Waiting[] = [];

  /** @param send one call of BatchCompleteAssignments, that gives its outcomes back */
  constructor(send: (requests: Completion[]) => Promise<readonly CompletionOutcome[]>) {
    this.#send = send;
  }

  /**
   * @param group only results of the same group go in one call, so that they do not wait for others'
   * @returns what the task is then
   * @throws ConnectError as CompleteAssignment does
   */
  complete(completion: Completion, group = ""): Promise<TaskStatus> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.length === 0) setImmediate(() => this.#sendAll());
      this.#waiting.push({ completion, group, resolve, reject });
    });
  }

  #sendAll(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const some of Map.groupBy(waiting, ({ group }) => group).values()) {
      for (let i = 0; i < some.length; i += MAX_AT_ONCE) this.#sendSome(some.slice(i, i + MAX_AT_ONCE));
    }
  }

  async #sendSome(some: readonly Waiting[]): Promise<void> {
    try {
      const outcomes = await this.#send(some.map(({ completion }) => completion));
      for (const [i, { resolve, reject }] of some.entries()) {
        const outcome = outcomes[i]?.outcome;
        if (outcome?.case === "status") resolve(outcome.value);
        else reject(errorOf(outcome?.value));
      }
    } catch (error) {
      if (some.length > 1 && ConnectError.from(error).code !== Code.Unavailable) {
        // One of them may be to blame, and the others must not pay for it. What was taken already is only answered again.
        for (const one of some) this.#sendSome([one]);
      } else for (const { reject } of some) reject(error);
    }
  }
}

/** A refusal within a message, as the call by itself would have thrown it. */
function errorOf(status: Status | undefined): ConnectError {
  const error = new ConnectError(status?.message ?? "no outcome", status?.code as Code | undefined);
  error.details = (status?.details ?? []).map(({ typeUrl, value }) => ({
    type: typeUrl.slice(typeUrl.lastIndexOf("/") + 1),
    value,
  }));
  return error;
}
