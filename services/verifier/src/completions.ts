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
import { fromConnectError, type Logger, Outbox, ownHeaders } from "@depute/service";
import type { Store } from "@depute/store";
import { requireRoom, saveAttestation } from "./attestations.ts";
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

/** Completions that may wait for another service at once. */
const MAX_PENDING = 10_000;
/** How long another service has for an answer, in milliseconds, where no caller waits. */
const TIMEOUT_MS = 10_000;
/** Longest message of a failure, in characters. */
const MAX_MESSAGE = 2000;

/** Refusals after which another try may succeed. Any other one is the answer. */
const PASSING: ReadonlySet<ErrorReason> = new Set([
  ErrorReason.DEPENDENCY_UNAVAILABLE,
  ErrorReason.SHUTTING_DOWN,
  ErrorReason.DEADLINE_EXCEEDED,
  ErrorReason.INTERNAL,
]);

export interface CompletionsOptions {
  readonly store: Store;
  /** Has a leaf for each attestation. */
  readonly transparency: TransparencyLog;
  readonly tasks: Client<typeof WorkerService>;
  readonly delegations: Client<typeof DelegationService>;
  readonly timers: Timers;
  readonly logger: Logger;
}

/** The state after a completion. */
export interface Completed {
  readonly status: DelegationStatus;
  /** Empty for a delegation without a task. */
  readonly taskId: string;
}

/**
 * Ends delegations by their delegatees' attestations: a saga over the tasks service, the tokens service and this one's store.
 *
 * A completion that was accepted is a row. The task decides where there is one, in its own transaction, since it has more
 * rules; otherwise the tokens service decides. What they refuse leaves nothing behind. What they took is followed by the end
 * of the delegation, and then by the attestation, which is stored in the transaction that drops the row. Each step may be
 * repeated, so a row that a crash left behind is driven to its end at the start.
 */
export class Completions {
  readonly #options: CompletionsOptions;
  readonly #outbox: Outbox<PendingCompletion>;

  constructor(options: CompletionsOptions) {
    this.#options = options;
    const { store, timers, logger } = options;
    this.#outbox = new Outbox<PendingCompletion>({
      timers,
      log: logger,
      what: "a delegation cannot be completed",
      first: (limit) => store.read((tx) => firstPending(tx, limit)),
      tell: (row, signal) => this.#finishAlone(row, signal),
      // The row is gone with the transaction that stores the attestation, or with the refusal.
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
   * Accepts a completion and drives it to its end.
   *
   * @throws DeputeError ATTESTATION_EXISTS, ATTESTATION_NOT_FOUND (a child), LIMIT_EXCEEDED, what tasks and tokens refuse;
   * DEPENDENCY_UNAVAILABLE, after which the completion is still finished
   */
  async complete(row: PendingCompletion, attestation: Attestation, options: CallOptions): Promise<Completed> {
    await this.#options.store.write(async (tx) => {
      await requireRoom(tx, row, attestation);
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
      if (PASSING.has(refusal.reason)) throw refusal;
      const { logger } = this.#options;
      logger.info(
        { err: refusal, attestation: row.id },
        "a completion was refused when it was taken up again",
      );
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
        await saveAttestation(tx, transparency, row, attestation);
        await dropPending(tx, row.id);
      });
      return { status, taskId: task?.id ?? "" };
    } catch (thrown) {
      const refusal = fromConnectError(thrown);
      if (!PASSING.has(refusal.reason)) await store.write((tx) => dropPending(tx, row.id));
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
      if (!hasEnded || PASSING.has(refusal.reason)) throw refusal;
      // The task ended by this attestation while the delegation was being revoked: both have ended.
      const { delegation } = await delegations.getDelegation(key, options);
      return delegation?.status ?? DelegationStatus.UNSPECIFIED;
    }
  }
}

/** Why the delegatee says that the work failed. */
export function failureOf({ result }: Attestation): string {
  const details = result.verificationOutcome?.details ?? "";
  return shorten(details === "" ? "the delegatee attests that the work failed" : details, MAX_MESSAGE);
}

/** The outcome of the contract's check as it is kept: JSON. */
export function keptCheck(method: string, result: CheckResult): string {
  return JSON.stringify({ ...result, method });
}

function checkOf(kept: string | null) {
  if (kept === null) return undefined;
  const { method, passed, score, details } = JSON.parse(kept) as CheckResult & { method: string };
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
