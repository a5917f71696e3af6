import type { JsonValue } from "@bufbuild/protobuf";
import type { SharedContext } from "@depute/contracts/depute/tasks/v1/context_pb";
import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";

/** What a piece of work is done with. */
export interface WorkContext {
  readonly task: Task;
  /** The DelegateOS token to work under; empty when the delegator gave none. */
  readonly workerToken: string;
  /** Aborts when the task was called off or the lease is lost: stop, nothing more is accepted. */
  readonly signal: AbortSignal;
  /** Says how far the work has come. Under the same `reportId` it counts once, however often the attempt says it. */
  progress(processed: number, total: number, message?: string, reportId?: string): Promise<void>;
  /** Gives a preliminary result; once under the same `reportId`, as `progress`. */
  partial(output: JsonValue, level?: "minimal" | "compact" | "full", reportId?: string): Promise<void>;
  /** What an earlier attempt saved last; undefined where none did. */
  readonly saved: JsonValue | undefined;
  /** The shared contexts that came along, with their data. */
  readonly contexts: readonly SharedContext[];
  /** What the delegator answered to the questions of earlier attempts. */
  readonly answers: readonly JsonValue[];
  /**
   * Saves what another attempt needs to go on from here. Work that the delegator wants interrupted is interrupted here:
   * this throws then, and the work has only to let it through.
   */
  checkpoint(state: JsonValue): Promise<void>;
  /** Asks the delegator for something, and waits for the answer. */
  ask(prompt: string, details?: JsonValue): Promise<JsonValue>;
  /** Aborts when the delegator wants the work interrupted; the next checkpoint does it. */
  readonly interrupting: AbortSignal;
}

/** A kind of evidence. (Agenta execution_receipt.schema.json `artifacts[].artifact_type`) */
export type EvidenceType =
  | "result_payload"
  | "logs"
  | "checksums"
  | "citations"
  | "screenshots"
  | "trace_ids"
  | "other";

/** What a seller delivers beside its result, for a task that carries out an execution bought on an offer. */
export interface WorkDelivery {
  /** Digests are `sha256:` and 64 hexadecimal digits. */
  artifacts?: { type: EvidenceType; uri: string; digest?: string; description?: string }[];
  /** What the offer's price counts. */
  usage?: { inputUnits?: number; outputUnits?: number; computeSeconds?: number };
  /** The price that was agreed on beforehand, in minor units, where the offer needs a quote. */
  quotedAmount?: bigint;
}

/** What a piece of work gives. Values travel as JSON.stringify writes them: members that are undefined are left out. */
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
  /** Evidence and usage, for a task that carries out an execution. */
  delivery?: WorkDelivery;
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

/** Thrown by work that cannot go on for now: the task is suspended until its delegator resumes it. */
export class WorkSuspension extends Error {
  /** Replaces the saved checkpoint; undefined keeps it. */
  readonly checkpoint: JsonValue | undefined;

  constructor(reason: string, checkpoint?: JsonValue) {
    super(reason);
    this.name = "WorkSuspension";
    this.checkpoint = checkpoint;
  }
}
