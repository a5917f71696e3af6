import { create, type JsonObject, toJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import type { Bus } from "@depute/bus";
import {
  ErrorCode,
  type ExecutionError,
  type ExecutionReceipt,
  ExecutionReceiptSchema,
  ExecutionStatus,
  FinancialsSchema,
} from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import { type Offer, VerificationMode } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import {
  Decision,
  type VerificationResult,
} from "@depute/contracts/agenta/delegation/v0/verification_result_pb";
import { ApprovalState } from "@depute/contracts/depute/tasks/v1/execution_service_pb";
import type { TaskCompleted } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { type Clock, formatTime, newId } from "@depute/core";
import type { WriteTx } from "@depute/store";
import { isTerminal as isTaskTerminal, type TaskChange, type TaskEngine } from "../../core/index.ts";
import { attestation } from "../rules/attestation.ts";
import { stateConflict } from "../rules/errors.ts";
import { canFollow, isTerminal, statusWord } from "../rules/machine.ts";
import { type Outcome, outcomeOf } from "../rules/outcome.ts";
import { priceOf } from "../rules/price.ts";
import {
  afterFailure,
  awaitVerification,
  NOTHING,
  type ReceiptContent,
  receiptOf,
} from "../rules/receipt.ts";
import type { ExecutionRecord } from "../rules/record.ts";
import { failed } from "../rules/refusal.ts";
import { isSettled, settle } from "../rules/settlement.ts";
import { isSelfAttested, needsVerification } from "../rules/terms.ts";
import {
  findByTask,
  insertExecution,
  insertOffer,
  readOffer,
  updateExecution,
} from "../store/execution-rows.ts";
import { insertReceipt, insertSettlement, readReceipt } from "../store/receipt-rows.ts";

/** The bus topic that wakes the watchers of an execution. The key is the request id of the execution. */
export const EXECUTION_TOPIC = "executions";

/** Receives changes of executions. The book calls each function in the transaction of the change. */
export interface BookListener {
  /** Called after each receipt, because the buyer may have requested a callback for it. */
  issued(tx: WriteTx, record: ExecutionRecord): Promise<void>;
  /** Called when the platform must record the seller's verification of the seller's own result. */
  attested(tx: WriteTx, record: ExecutionRecord, result: VerificationResult): Promise<void>;
}

export interface BookOptions {
  readonly bus: Bus;
  readonly clock: Clock;
  readonly engine: Pick<TaskEngine, "find">;
  /** Milliseconds for which a completed execution waits for a verification. */
  readonly verificationMs: number;
}

/**
 * Stores executions. Each change of an execution's status is a receipt, written in the transaction of the event that
 * caused the change.
 */
export class ExecutionBook {
  readonly #bus: Bus;
  readonly #clock: Clock;
  readonly #engine: Pick<TaskEngine, "find">;
  readonly #verificationMs: number;
  readonly #listeners: BookListener[] = [];
  #onDue: () => void = () => {};

  constructor({ bus, clock, engine, verificationMs }: BookOptions) {
    this.#bus = bus;
    this.#clock = clock;
    this.#engine = engine;
    this.#verificationMs = verificationMs;
  }

  /** Adds a listener for receipts and for sellers' verifications. */
  listen(listener: BookListener): void {
    this.#listeners.push(listener);
  }

  /** Sets the listener that the book calls when a change sets a new deadline. */
  onDue(listener: () => void): void {
    this.#onDue = listener;
  }

  /**
   * Stores an execution request with its first receipt.
   *
   * @param offer undefined for a rejected request
   */
  async enter(
    tx: WriteTx,
    record: ExecutionRecord,
    content: Omit<ReceiptContent, "receiptId" | "issuedMs">,
    offer?: Offer,
  ): Promise<ExecutionReceipt> {
    if (!canFollow(undefined, record.status)) throw notFollowing(undefined, record.status);
    await insertExecution(tx, record);
    if (offer !== undefined) {
      await insertOffer(tx, offer);
      const { settlement: state, limit: amount, createMs: timeMs } = record;
      const reason = "the request was accepted";
      await insertSettlement(tx, record.request.requestId, { state, amount, reason, timeMs });
    }
    const receipt = receiptOf(record.request, {
      ...content,
      receiptId: newId(this.#clock.now()),
      issuedMs: record.createMs,
    });
    await this.#issue(tx, record, receipt, false);
    return receipt;
  }

  /** Issues receipts for the events of tasks. This method is a `TaskObserver`. */
  async observe(tx: WriteTx, { before, after, events }: TaskChange): Promise<void> {
    if (after.task.executionRequestId === "" || before === undefined) return;
    let record: ExecutionRecord | undefined;
    for (const event of events) {
      const { case: what } = event.payload;
      if (what === "progress" || what === "partial" || what === "checkpointed") continue;
      record ??= await findByTask(tx, after.task.id);
      if (record === undefined) return;
      if (what === "cancelled") {
        await requireCancellable(tx, this.#engine, record, after.task.parentTaskId);
      }
      const outcome = outcomeOf(event, record.status);
      if (outcome === undefined) continue;
      record =
        event.payload.case === "completed"
          ? await this.#complete(tx, record, event.payload.value)
          : await this.#move(tx, record, outcome);
    }
  }

  /**
   * Issues the receipt of an outcome other than completion. If the execution ends, also settles the payment: the buyer
   * pays nothing.
   */
  async #move(tx: WriteTx, before: ExecutionRecord, outcome: Outcome): Promise<ExecutionRecord> {
    const { status, reason, error } = outcome;
    const nowMs = this.#clock.now();
    const hasEnded = isTerminal(status);
    const record: ExecutionRecord = {
      ...before,
      status,
      settlement: hasEnded ? settle(before.settlement, false) : before.settlement,
      endMs: hasEnded ? nowMs : undefined,
    };
    if (hasEnded) await this.#noteUnpaid(tx, record, `the execution is ${statusWord(status)}`);
    return this.#follow(tx, before, record, {
      receiptId: newId(this.#clock.now()),
      executionId: before.taskId,
      status,
      issuedMs: nowMs,
      reason,
      nextAction: hasEnded ? afterFailure(error) : NOTHING,
      ...(error && { error }),
      ...(hasEnded && { financials: { currency: before.request.payment?.currency, finalAmount: 0n } }),
    });
  }

  async #complete(tx: WriteTx, before: ExecutionRecord, done: TaskCompleted): Promise<ExecutionRecord> {
    const { request } = before;
    const offer = await readOffer(tx, before);
    const { pricing, verificationPolicy } = offer;
    if (pricing === undefined) throw new Error(`the offer ${offer.offerId} has no price`);
    const { artifacts = [], usage, quotedAmount } = done.delivery ?? {};
    const price = priceOf(pricing, before.limit, usage, quotedAmount);
    if ("error" in price) {
      const { error } = price;
      return this.#move(tx, before, { status: ExecutionStatus.FAILED, reason: error.message, error });
    }
    const nowMs = this.#clock.now();
    const isAwaited = needsVerification(request, offer);
    const verifyBy = nowMs + this.#verificationMs;
    const captureId = isAwaited ? "" : newId(this.#clock.now());
    const record: ExecutionRecord = {
      ...before,
      status: ExecutionStatus.COMPLETED,
      settlement: isAwaited ? before.settlement : settle(before.settlement, true),
      finalAmount: price.amount,
      captureId,
      verifyBy: isAwaited ? verifyBy : undefined,
      endMs: nowMs,
    };
    if (!isAwaited) await this.#notePaid(tx, record, "no verification is required");
    const result = done.output?.full === undefined ? undefined : toJson(ValueSchema, done.output.full);
    const mode = verificationPolicy?.mode ?? VerificationMode.UNSPECIFIED;
    const receiptId = newId(this.#clock.now());
    const followed = await this.#follow(tx, before, record, {
      receiptId,
      executionId: before.taskId,
      status: ExecutionStatus.COMPLETED,
      issuedMs: nowMs,
      nextAction: isAwaited ? awaitVerification(mode, verifyBy) : NOTHING,
      artifacts,
      ...(isObject(result) && { result }),
      ...(usage && { usage }),
      financials: {
        currency: pricing.currency,
        finalAmount: price.amount,
        ...(captureId !== "" && { paymentCaptureId: captureId }),
      },
    });
    if (isSelfAttested(request, offer)) {
      const attested = attestation(followed, offer, {
        verificationId: newId(this.#clock.now()),
        receiptId,
        nowMs,
      });
      for (const listener of this.#listeners) await listener.attested(tx, followed, attested);
    }
    if (isAwaited) tx.afterCommit(() => this.#onDue());
    return followed;
  }

  /**
   * Settles the payment of a completed execution by a verification. Changes nothing if the verification is
   * inconclusive, or if the payment is already settled.
   */
  async settleBy(tx: WriteTx, before: ExecutionRecord, result: VerificationResult): Promise<ExecutionRecord> {
    const { decision, verificationId } = result;
    if (decision === Decision.INCONCLUSIVE || before.status !== ExecutionStatus.COMPLETED) return before;
    if (isSettled(before.settlement)) return before;
    if (decision === Decision.PASS) return this.#settle(tx, before, `verified: ${verificationId}`);
    const details = { verification_id: verificationId, failure_reasons: reasonsOf(result) };
    const error = failed(ErrorCode.VERIFICATION_FAILED, "the result did not pass its verification", details);
    return this.#settle(tx, before, `did not pass: ${verificationId}`, error);
  }

  /** Settles the payment of an execution if no verification result came in time: the buyer pays nothing. */
  async settleOverdue(tx: WriteTx, before: ExecutionRecord): Promise<ExecutionRecord> {
    const { verifyBy, settlement } = before;
    if (verifyBy === undefined || verifyBy > this.#clock.now() || isSettled(settlement)) return before;
    const message = "no verification of the result arrived in time";
    return this.#settle(tx, before, message, failed(ErrorCode.VERIFICATION_PENDING, message));
  }

  /** Issues the receipt that reports the settlement of a completed execution. The status does not change. */
  async #settle(
    tx: WriteTx,
    before: ExecutionRecord,
    reason: string,
    error?: ExecutionError,
  ): Promise<ExecutionRecord> {
    const isPaid = error === undefined;
    const captureId = isPaid ? newId(this.#clock.now()) : "";
    const lastNumber = before.lastNumber + 1;
    const settlement = settle(before.settlement, isPaid);
    const record: ExecutionRecord = { ...before, settlement, captureId, lastNumber, verifyBy: undefined };
    const settled: ExecutionRecord = isPaid ? record : { ...record, finalAmount: 0n };
    await (isPaid ? this.#notePaid(tx, settled, reason) : this.#noteUnpaid(tx, settled, reason));
    const { requestId, payment } = before.request;
    const completed = await readReceipt(tx, requestId, before.lastNumber);
    const receipt = create(ExecutionReceiptSchema, {
      ...completed,
      receiptId: newId(this.#clock.now()),
      issuedAt: formatTime(this.#clock.now()),
      statusReason: reason,
      financials: create(FinancialsSchema, {
        currency: payment?.currency ?? "",
        finalAmount: settled.finalAmount ?? 0n,
        ...(isPaid && { paymentCaptureId: captureId }),
      }),
      nextAction: NOTHING,
      ...(error && { error }),
    });
    await updateExecution(tx, settled);
    await this.#issue(tx, settled, receipt, true);
    return settled;
  }

  async #notePaid(tx: WriteTx, record: ExecutionRecord, reason: string): Promise<void> {
    const { settlement: state, finalAmount: amount = 0n, request } = record;
    await insertSettlement(tx, request.requestId, { state, amount, reason, timeMs: this.#clock.now() });
  }

  async #noteUnpaid(tx: WriteTx, record: ExecutionRecord, reason: string): Promise<void> {
    const { settlement: state, limit: amount, request } = record;
    await insertSettlement(tx, request.requestId, { state, amount, reason, timeMs: this.#clock.now() });
  }

  async #follow(
    tx: WriteTx,
    before: ExecutionRecord,
    after: ExecutionRecord,
    content: ReceiptContent,
  ): Promise<ExecutionRecord> {
    if (!canFollow(before.status, after.status)) throw notFollowing(before.status, after.status);
    const record = { ...after, lastNumber: before.lastNumber + 1 };
    await updateExecution(tx, record);
    await this.#issue(tx, record, receiptOf(record.request, content), false);
    return record;
  }

  async #issue(
    tx: WriteTx,
    record: ExecutionRecord,
    receipt: ExecutionReceipt,
    settles: boolean,
  ): Promise<void> {
    const { requestId } = record.request;
    await insertReceipt(tx, requestId, { number: record.lastNumber, receipt, settles });
    for (const listener of this.#listeners) await listener.issued(tx, record);
    tx.afterCommit(() => this.#bus.publish(EXECUTION_TOPIC, requestId));
  }
}

/**
 * Requires that the offer permits cancellation. The offer does not matter if the parent task has ended, or if the
 * approval was refused: then the platform itself cancels the task.
 */
async function requireCancellable(
  tx: WriteTx,
  engine: Pick<TaskEngine, "find">,
  record: ExecutionRecord,
  parentTaskId: string,
): Promise<void> {
  if (record.approval === ApprovalState.REFUSED) return;
  const { serviceLevels } = await readOffer(tx, record);
  if (serviceLevels?.supportsCancellation === true) return;
  const parent = parentTaskId === "" ? undefined : await engine.find(tx, parentTaskId);
  if (parent !== undefined && isTaskTerminal(parent.task.status)) return;
  throw stateConflict(record, "the offer does not support cancellation");
}

/** Returns the verifier's reasons for a failed verification: the listed reasons, or else the summary. May be empty. */
function reasonsOf({ failureReasons, summary }: VerificationResult): string[] {
  const reasons = failureReasons?.values ?? [];
  return reasons.length > 0 ? [...reasons] : summary === undefined ? [] : [summary];
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function notFollowing(from: ExecutionStatus | undefined, to: ExecutionStatus): Error {
  return new Error(
    `a receipt with status ${statusWord(to)} cannot follow ${from === undefined ? "nothing" : statusWord(from)}`,
  );
}
