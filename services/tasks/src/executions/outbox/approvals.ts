import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { ExecutionReceipt } from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import { ApprovalState } from "@depute/contracts/depute/tasks/v1/execution_service_pb";
import {
  type Review,
  ReviewKind,
  ReviewState,
  ReviewVerdict,
} from "@depute/contracts/depute/verifier/v1/review_service_pb";
import type { Clock } from "@depute/core";
import {
  isFinalRefusal,
  Outbox,
  optionsForOwner,
  type ReviewQueue,
  reviewCallOptions,
  type ServiceDeps,
} from "@depute/service";
import type { WriteTx } from "@depute/store";
import { openReviewQueue, type TaskEngine } from "../../core/index.ts";
import type { BookListener } from "../book/book.ts";
import { executionNotFound, stateConflict } from "../rules/errors.ts";
import { isTerminal } from "../rules/machine.ts";
import type { ExecutionRecord } from "../rules/record.ts";
import { timesOf } from "../rules/terms.ts";
import { findExecution, readOffer, updateExecution } from "../store/execution-rows.ts";
import {
  closeReview,
  deleteReview,
  insertReview,
  nameReview,
  type ReviewRow,
  reviewsToTell,
} from "../store/outbox-rows.ts";
import { readReceipt } from "../store/receipt-rows.ts";

/** Maximum duration of a review, in milliseconds. */
const MAX_REVIEW_MS = 365 * 86_400_000;

const { AWAITED, GIVEN, REFUSED } = ApprovalState;

/**
 * Approvals before the start of work. The queue does not dispatch a task before its approval. The buyer approves by
 * ApproveExecution or in the review queue, and the first decision counts. After ApproveExecution, the outbox closes the
 * review in the queue.
 */
export class Approvals {
  readonly #engine: TaskEngine;
  readonly #clock: Clock;
  readonly #outbox: Outbox<ReviewRow>;
  readonly #queue: ReviewQueue;

  constructor(deps: ApprovalsDeps, engine: TaskEngine) {
    const { clock, timers, log } = deps;
    this.#engine = engine;
    this.#clock = clock;
    this.#outbox = new Outbox<ReviewRow>({
      timers,
      log,
      lease: engine.lease("approvals"),
      failureMessage: "an approval cannot be sent to the verifier",
      first: (limit) => engine.store.read((tx) => reviewsToTell(tx, limit)),
      drop: async () => {},
      tell: (row, signal) => this.#tell(row, signal),
    });
    this.#queue = openReviewQueue(deps, engine, {
      kind: ReviewKind.START_APPROVAL,
      cursor: "execution-reviews",
      streamName: "reviews of executions",
      apply: (review, advance) =>
        engine.store.write(async (tx) => {
          await this.#apply(tx, review);
          await advance(tx);
        }),
    });
  }

  readonly listener: BookListener = {
    issued: async (tx, record) => {
      if (record.approval !== AWAITED) return;
      if (isTerminal(record.status)) return this.#close(tx, record);
      await insertReview(tx, record.request.requestId);
      tx.afterCommit(() => this.#outbox.wake());
    },
    attested: async () => {},
  };

  start(): void {
    this.#outbox.start();
    this.#queue.start();
  }

  async close(): Promise<void> {
    await Promise.all([this.#outbox.close(), this.#queue.close()]);
  }

  /**
   * Approves an execution, so that its work can begin.
   *
   * @returns the newest receipt
   * @throws DeputeError EXECUTION_NOT_FOUND, EXECUTION_STATE_CONFLICT
   */
  approve(requestId: string): Promise<ExecutionReceipt> {
    return this.#engine.store.write(async (tx) => {
      const record = await findExecution(tx, requestId);
      if (record === undefined) throw executionNotFound(requestId);
      if (record.approval !== GIVEN) await this.#give(tx, record);
      return readReceipt(tx, requestId, record.lastNumber);
    });
  }

  async #give(tx: WriteTx, record: ExecutionRecord): Promise<void> {
    const nowMs = this.#clock.now();
    if (record.approval !== AWAITED)
      throw stateConflict(record, "the execution does not wait for an approval");
    if (isTerminal(record.status) || nowMs >= record.startBy) {
      throw stateConflict(record, "the execution has ended");
    }
    await updateExecution(tx, { ...record, approval: GIVEN });
    const { startFrom } = timesOf(record.request, await readOffer(tx, record), nowMs);
    await this.#engine.delay(tx, record.taskId, startFrom);
    await this.#close(tx, record);
  }

  /** Ends an execution after a reviewer refused to approve it. */
  async #refuse(tx: WriteTx, record: ExecutionRecord, reason: string): Promise<void> {
    if (record.approval !== AWAITED || isTerminal(record.status)) return;
    await updateExecution(tx, { ...record, approval: REFUSED });
    const why = `the start was not approved: ${reason}`.slice(0, 1000);
    await this.#engine.cancel(tx, record.taskId, why, { ifOpen: true });
  }

  async #close(tx: WriteTx, { request }: ExecutionRecord): Promise<void> {
    if (await closeReview(tx, request.requestId)) tx.afterCommit(() => this.#outbox.wake());
  }

  /**
   * Creates the review of an execution. After ApproveExecution, decides that review. After the end of the execution,
   * withdraws the review.
   */
  async #tell({ requestId, reviewId }: ReviewRow, signal: AbortSignal): Promise<void> {
    const { store } = this.#engine;
    const options = reviewCallOptions(signal);
    const record = await store.read((tx) => findExecution(tx, requestId));
    const isAwaited = record?.approval === AWAITED && !isTerminal(record.status);
    if (record !== undefined && isAwaited && reviewId === "") {
      const request = reviewOf(record);
      const { review } = await this.#queue.calls.createReview(request, optionsForOwner(options, record));
      await store.write((tx) => nameReview(tx, requestId, review?.id ?? ""));
      return;
    }
    if (reviewId !== "" && record !== undefined) {
      const decided =
        record.approval === GIVEN
          ? this.#queue.calls.decideReview(
              { reviewId, verdict: ReviewVerdict.APPROVED, reviewer: record.buyerPrincipal },
              options,
            )
          : this.#queue.calls.withdrawReview({ reviewId, reason: "the execution has ended" }, options);
      await decided.catch((error: unknown) => {
        if (!isFinalRefusal(error)) throw error;
      });
    }
    await store.write((tx) => deleteReview(tx, requestId));
  }

  /** Applies a decision of the review queue to its execution. */
  async #apply(tx: WriteTx, { state, subject, reason }: Review): Promise<void> {
    const record = await findExecution(tx, subject);
    if (record?.approval !== AWAITED || isTerminal(record.status)) return;
    if (state === ReviewState.APPROVED) {
      if (this.#clock.now() < record.startBy) await this.#give(tx, record);
    } else if (state === ReviewState.REJECTED || state === ReviewState.CHANGES_REQUESTED) {
      await this.#refuse(tx, record, reason);
    }
  }
}

type ApprovalsDeps = Pick<ServiceDeps, "clock" | "timers" | "log" | "connect">;

function reviewOf({ request, buyerPrincipal, sellerPrincipal, startBy, createMs }: ExecutionRecord) {
  // The timeout depends only on stored times, so a retry sends an identical request.
  const timeoutMs = Math.min(Math.max(1, Math.ceil((startBy - createMs) / 1000)) * 1000, MAX_REVIEW_MS);
  return {
    requestId: `execution:${request.requestId}`.slice(0, 128),
    kind: ReviewKind.START_APPROVAL,
    subject: request.requestId,
    title: `Start of ${request.offerId}, version ${request.offerVersion}`.slice(0, 256),
    author: sellerPrincipal === buyerPrincipal ? "" : sellerPrincipal,
    reviewers: [buyerPrincipal],
    timeout: durationFromMs(timeoutMs),
  };
}
