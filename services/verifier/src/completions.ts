import { create, fromJsonString } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import type { CallOptions, Client } from "@connectrpc/connect";
import { DelegationStatus } from "@depute/contracts/delegateos/v0/delegation_pb";
import {
  type Task,
  TaskFailureSchema,
  TaskStatus,
  TaskVerificationSchema,
} from "@depute/contracts/depute/tasks/v1/task_pb";
import type { WorkerService } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import type { DelegationService } from "@depute/contracts/depute/tokens/v1/delegation_service_pb";
import { DeputeError, ErrorReason, type Timers } from "@depute/core";
import { attestedState } from "@depute/dct";
import { fromConnectError, type Logger, Outbox, ownHeaders, type WorkLease } from "@depute/service";
import type { Store } from "@depute/store";
import { requireStorable, storeAttestation } from "./attestations.ts";
import { toMessage } from "./documents.ts";
import { type CheckResult, shorten } from "./rules/check-result.ts";
import type { Attestation } from "./rules/documents.ts";
import {
  countPending,
  dropPending,
  firstPending,
  insertPending,
  type PendingCompletion,
} from "./store/completions.ts";
import type { TransparencyLog } from "./transparency-log.ts";

/** Maximum number of pending completions. */
const MAX_PENDING = 10_000;
/** Timeout in milliseconds of the calls that the outbox makes to other services. */
const TIMEOUT_MS = 10_000;
/** Maximum length, in characters, of the message that explains a failure. */
const MAX_MESSAGE = 2000;

/** Errors after which the outbox retries. Every other error is final. */
const RETRYABLE: ReadonlySet<ErrorReason> = new Set([
  ErrorReason.DEPENDENCY_UNAVAILABLE,
  ErrorReason.SHUTTING_DOWN,
  ErrorReason.DEADLINE_EXCEEDED,
  ErrorReason.INTERNAL,
]);

export interface CompletionsOptions {
  readonly store: Store;
  /** The transparency log, to which each stored attestation is appended. */
  readonly transparency: TransparencyLog;
  readonly tasks: Client<typeof WorkerService>;
  readonly delegations: Client<typeof DelegationService>;
  readonly timers: Timers;
  readonly logger: Logger;
  /** The lease of the replica that finishes interrupted completions; undefined without replicas. */
  readonly lease: WorkLease | undefined;
}

/** The state of a delegation after its completion. */
export interface Completed {
  readonly status: DelegationStatus;
  /** The id of the delegation's task; empty if the delegation has no task. */
  readonly taskId: string;
}

/**
 * Ends delegations when their delegatees attest completion. The class first stores the completion as a row. Then it
 * asks the tasks service to end the delegation's task, if there is one, and the tokens service to end the delegation.
 * If a service refuses, the class deletes the row. Otherwise one transaction stores the attestation and deletes the
 * row. Every step can be repeated, so the next start finishes the completions that a crash interrupted.
 */
export class Completions {
  readonly #options: CompletionsOptions;
  readonly #outbox: Outbox<PendingCompletion>;

  constructor(options: CompletionsOptions) {
    this.#options = options;
    const { store, timers, logger, lease } = options;
    this.#outbox = new Outbox<PendingCompletion>({
      timers,
      log: logger,
      failureMessage: "completion of a delegation failed",
      lease,
      first: (limit) => store.read((tx) => firstPending(tx, limit)),
      tell: (row, signal) => this.#finishAlone(row, signal),
      // There is no row to delete: the transaction that stored the attestation, or the refusal, has deleted the row.
      drop: async () => {},
    });
  }

  start(): void {
    this.#outbox.start();
  }

  async close(): Promise<void> {
    await this.#outbox.close();
  }

  /**
   * Stores a completion as a row, and finishes it.
   *
   * @throws DeputeError ATTESTATION_EXISTS, ATTESTATION_NOT_FOUND (a child), CONTRACT_NOT_FOUND, LIMIT_EXCEEDED, and
   * the refusals of the tasks and tokens services
   * @throws DeputeError DEPENDENCY_UNAVAILABLE, SHUTTING_DOWN, DEADLINE_EXCEEDED, INTERNAL: the outbox finishes the
   * completion later
   */
  async complete(row: PendingCompletion, attestation: Attestation, options: CallOptions): Promise<Completed> {
    await this.#options.store.write(async (tx) => {
      await requireStorable(tx, row, attestation);
      if ((await countPending(tx)) >= MAX_PENDING) throw tooMany();
      await insertPending(tx, row);
    });
    try {
      return await this.#drive(row, attestation, options);
    } catch (error) {
      this.#outbox.wake();
      throw error;
    }
  }

  async #finishAlone(row: PendingCompletion, signal: AbortSignal): Promise<void> {
    const attestation = JSON.parse(row.document) as Attestation;
    const options = { headers: ownHeaders(""), signal, timeoutMs: TIMEOUT_MS };
    await this.#drive(row, attestation, options).catch((thrown: unknown) => {
      const refusal = fromConnectError(thrown);
      if (RETRYABLE.has(refusal.reason)) throw refusal;
      const { logger } = this.#options;
      logger.info({ err: refusal, attestation: row.id }, "pending completion was refused");
    });
  }

  async #drive(row: PendingCompletion, attestation: Attestation, options: CallOptions): Promise<Completed> {
    const { store, transparency } = this.#options;
    try {
      const task = await this.#endTask(row, attestation, options);
      const status =
        task?.status === TaskStatus.IN_REVIEW
          ? DelegationStatus.ACTIVE
          : await this.#endDelegation(row, attestation, task !== undefined, options);
      await store.write(async (tx) => {
        await storeAttestation(tx, transparency, row, attestation);
        await dropPending(tx, row.id);
      });
      return { status, taskId: task?.id ?? "" };
    } catch (thrown) {
      const refusal = fromConnectError(thrown);
      if (!RETRYABLE.has(refusal.reason)) await store.write((tx) => dropPending(tx, row.id));
      throw refusal;
    }
  }

  async #endTask(
    row: PendingCompletion,
    attestation: Attestation,
    options: CallOptions,
  ): Promise<Task | undefined> {
    const { result, id } = attestation;
    const hasSucceeded = attestedState(attestation) === "completed";
    const completed = { output: outputOf(row, attestation), verification: checkOf(row.verification) };
    const failed = create(TaskFailureSchema, { reason: "TASK_FAILED", message: failureOf(attestation) });
    const { task } = await this.#options.tasks.endAttestedTask(
      {
        ...{ revocationId: row.revocationId, attestationId: id },
        outcome: hasSucceeded ? { case: "completed", value: completed } : { case: "failed", value: failed },
        usage: { costMicrocents: BigInt(result.costMicrocents) },
      },
      options,
    );
    return task;
  }

  async #endDelegation(
    { revocationId }: PendingCompletion,
    attestation: Attestation,
    hasEnded: boolean,
    options: CallOptions,
  ): Promise<DelegationStatus> {
    const { delegations } = this.#options;
    const key = { delegationId: attestation.delegationId, revocationId };
    const outcome = { case: "attestation", value: toMessage("attestation", attestation) } as const;
    try {
      const { delegation } = await delegations.finishDelegation({ ...key, outcome }, options);
      return delegation?.status ?? DelegationStatus.UNSPECIFIED;
    } catch (thrown) {
      const refusal = fromConnectError(thrown);
      if (!hasEnded || RETRYABLE.has(refusal.reason)) throw refusal;
      // Between the end of the task and this call, another call has ended the delegation, for example by a revocation.
      // Returns the recorded status.
      const { delegation } = await delegations.getDelegation(key, options);
      return delegation?.status ?? DelegationStatus.UNSPECIFIED;
    }
  }
}

/**
 * Returns the attestation's explanation of a failure, at most MAX_MESSAGE characters; a general text if the attestation
 * has none.
 */
export function failureOf({ result }: Attestation): string {
  const details = result.verificationOutcome?.details ?? "";
  return shorten(details === "" ? "the delegatee attests that the work failed" : details, MAX_MESSAGE);
}

/** Returns the method and the result of the contract's check as JSON, for the row of a pending completion. */
export function serializeCheck(method: string, result: CheckResult): string {
  return JSON.stringify({ ...result, method });
}

function checkOf(checkJson: string | null) {
  if (checkJson === null) return undefined;
  const { method, passed, score, details } = JSON.parse(checkJson) as CheckResult & { method: string };
  return create(TaskVerificationSchema, {
    ...{ method, passed, details: details ?? "" },
    ...(score !== undefined && { score }),
  });
}

function outputOf({ output }: PendingCompletion, { result }: Attestation): Value | undefined {
  const text = output ?? (result.output === undefined ? undefined : JSON.stringify(result.output));
  return text === undefined ? undefined : fromJsonString(ValueSchema, text);
}

function tooMany(): DeputeError {
  return new DeputeError(
    ErrorReason.LIMIT_EXCEEDED,
    "too many completions wait for another service; try again later",
    { metadata: { limit: "pending_completions", max: String(MAX_PENDING) } },
  );
}
