import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { SharedContext } from "@depute/contracts/depute/tasks/v1/context_pb";
import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";

/** The task that the work carries out, the data of the task, and the functions that the work may call. */
export interface WorkContext {
  readonly task: Task;
  /**
   * The A2A message that began the task, in its JSON form: its parts, its `contextId`, its `metadata` and the
   * tasks to which it refers. Undefined for a task that no A2A message began. (A2A 4.1.4)
   */
  readonly message: JsonObject | undefined;
  /**
   * All A2A messages of the task, in order: the message that began the task, and the messages that answered
   * questions. After `ask` resolves, the last message is the one with the answer, unless the delegator answered
   * without A2A. (A2A 4.1.4)
   */
  readonly messages: readonly JsonObject[];
  /** The DelegateOS token for work in the delegator's name; empty if the delegator attached none. */
  readonly workerToken: string;
  /**
   * Aborts when the task is cancelled, the lease is lost or the worker stops. The work must then stop. Of the calls
   * below, only `checkpoint` still has an effect, if the worker stops or the delegator set a grace period. The lease is
   * also lost if the platform is unreachable for the duration of a lease.
   */
  readonly signal: AbortSignal;
  /** Reports progress. Within an attempt, several reports with one `reportId` count once. */
  progress(processed: number, total: number, message?: string, reportId?: string): Promise<void>;
  /** Reports a preliminary result. Within an attempt, several results with one `reportId` count once. */
  partial(output: JsonValue, level?: "minimal" | "compact" | "full", reportId?: string): Promise<void>;
  /** The last checkpoint of earlier attempts; undefined if there is none. */
  readonly saved: JsonValue | undefined;
  /** The shared contexts of the task, with their data. */
  readonly contexts: readonly SharedContext[];
  /** The delegator's answers to the questions of earlier attempts. */
  readonly answers: readonly JsonValue[];
  /**
   * Saves a state from which another attempt can continue. If the delegator has requested an interruption, this call
   * throws an error that the work must not catch.
   */
  checkpoint(state: JsonValue): Promise<void>;
  /**
   * Asks the delegator a question, and waits for the answer. The kind "authorization" asks for an authorization, and
   * A2A clients see the question as TASK_STATE_AUTH_REQUIRED (A2A 7.6). The work decides whether the answer grants the
   * authorization. Default of `kind`: "input".
   */
  ask(prompt: string, details?: JsonValue, kind?: QuestionKind): Promise<JsonValue>;
  /** Aborts when the delegator requests an interruption. The next checkpoint then interrupts the work. */
  readonly interrupting: AbortSignal;
}

/** The kind of answer that a question asks for. */
export type QuestionKind = "input" | "authorization";

/** A kind of evidence. (Agenta execution_receipt.schema.json `artifacts[].artifact_type`) */
export type EvidenceType =
  | "result_payload"
  | "logs"
  | "checksums"
  | "citations"
  | "screenshots"
  | "trace_ids"
  | "other";

/** The seller's delivery in addition to the result, for a task that carries out an execution. */
export interface WorkDelivery {
  /** The evidence. A digest is `sha256:` and 64 hexadecimal digits. */
  artifacts?: { type: EvidenceType; uri: string; digest?: string; description?: string }[];
  /** Usage in the units that the offer prices. */
  usage?: { inputUnits?: number; outputUnits?: number; computeSeconds?: number };
  /** The agreed price in minor units of the offer's currency, if the offer requires a quote. */
  quotedAmount?: bigint;
}

/** The result of a piece of work. Values are sent as JSON.stringify writes them, so undefined members are left out. */
export interface WorkResult {
  output: JsonValue;
  /** A shorter form of the output; absent if the work has none. */
  compact?: JsonValue;
  /** The output in one line of text. */
  minimal?: string;
  tokensUsed?: number;
  /** The cost of the work in microcents. 1 USD is 100,000,000 microcents. Default: 0. */
  costMicrocents?: number | bigint;
  /** Id of the worker's recorded attestation of the output; absent for none. */
  attestationId?: string;
  /** Evidence and usage, for a task that carries out an execution. */
  delivery?: WorkDelivery;
}

/** The function of a worker, from input to result. If it throws, the attempt fails; see WorkFailure. */
export type Work = (input: JsonValue, context: WorkContext) => Promise<WorkResult>;

/**
 * Thrown by work to fail the attempt with a known reason. Any other error fails the attempt with the retryable reason
 * WORKER_ERROR.
 */
export class WorkFailure extends Error {
  /** A reason in upper case, for programs. */
  readonly reason: string;
  readonly retryable: boolean;

  constructor(reason: string, message: string, retryable: boolean) {
    super(message);
    this.name = "WorkFailure";
    this.reason = reason;
    this.retryable = retryable;
  }
}

/** Thrown by work that cannot continue now. Suspends the task until the delegator resumes it. */
export class WorkSuspension extends Error {
  /** The checkpoint to save. If it is undefined, the saved checkpoint stays. */
  readonly checkpoint: JsonValue | undefined;

  constructor(reason: string, checkpoint?: JsonValue) {
    super(reason);
    this.name = "WorkSuspension";
    this.checkpoint = checkpoint;
  }
}
