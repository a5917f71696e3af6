import { type Client, createClient, type Transport } from "@connectrpc/connect";
import type { ExecutionReceipt } from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import { ApprovalState } from "@depute/contracts/depute/tasks/v1/execution_service_pb";
import {
  type Review,
  ReviewKind,
  ReviewService,
  ReviewState,
  ReviewVerdict,
} from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { type Clock, ErrorReason, type Timers } from "@depute/core";
import { type Logger, Outbox, ownHeaders, reasonOf, StreamFollower } from "@depute/service";
import type { WriteTx } from "@depute/store";
import type { Cursor, TaskEngine } from "../../core/index.ts";
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

/** The cursor's name in the store. */
const CURSOR = "execution-reviews";
/** How long the verifier has for an answer, milliseconds. */
const TIMEOUT_MS = 10_000;
/** The longest time that a review may take, seconds. */
const MAX_REVIEW_SECONDS = 31_536_000;

const { AWAITED, GIVEN, REFUSED } = ApprovalState;

export interface ApprovalsOptions {
  readonly engine: TaskEngine;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Logger;
  readonly verifier: Transport;
}

/**
 * Approval before the start: work that waits for it is held back from workers. A person approves by ApproveExecution, or in
 * the queue of reviews; whichever comes first counts, and the other is told.
 */
export class Approvals {
  readonly #engine: TaskEngine;
  readonly #clock: Clock;
  readonly #cursor: Cursor;
  readonly #reviews: Client<typeof ReviewService>;
  readonly #outbox: Outbox<ReviewRow>;
  readonly #follower: StreamFollower;

  constructor({ engine, clock, timers, log, verifier }: ApprovalsOptions) {
    this.#engine = engine;
    this.#clock = clock;
    this.#cursor = engine.cursor(CURSOR);
    this.#reviews = createClient(ReviewService, verifier);
    this.#outbox = new Outbox<ReviewRow>({
      timers,
      log,
      what: "an approval cannot be told to the verifier",
      first: (limit) => engine.store.read((tx) => reviewsToTell(tx, limit)),
      drop: async () => {},
      tell: (row, signal) => this.#tell(row, signal),
    });
    this.#follower = new StreamFollower({
      what: "reviews of executions",
      timers,
      log,
      follow: (signal, heard) => this.#follow(signal, heard),
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
    this.#follower.start();
  }

  async close(): Promise<void> {
    await Promise.all([this.#outbox.close(), this.#follower.close()]);
  }

  /**
   * Lets the work begin.
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
    if (record.approval !== AWAITED) throw stateConflict(record, "no approval is waited for");
    if (isTerminal(record.status) || nowMs >= record.startBy) {
      throw stateConflict(record, "the execution has ended");
    }
    await updateExecution(tx, { ...record, approval: GIVEN });
    const { startFrom } = timesOf(record.request, await readOffer(tx, record), nowMs);
    await this.#engine.delay(tx, record.taskId, startFrom);
    await this.#close(tx, record);
  }

  /** Ends work that a person does not want begun. */
  async #refuse(tx: WriteTx, record: ExecutionRecord, reason: string): Promise<void> {
    if (record.approval !== AWAITED || isTerminal(record.status)) return;
    await updateExecution(tx, { ...record, approval: REFUSED });
    const why = `the start was not approved: ${reason}`.slice(0, 1000);
    await this.#engine.cancel(tx, record.taskId, why, { ifOpen: true });
  }

  async #close(tx: WriteTx, { request }: ExecutionRecord): Promise<void> {
    if (await closeReview(tx, request.requestId)) tx.afterCommit(() => this.#outbox.wake());
  }

  /** Puts a review into the queue, or takes one out of it that is decided here. */
  async #tell({ requestId, reviewId }: ReviewRow, signal: AbortSignal): Promise<void> {
    const { store } = this.#engine;
    const options = { headers: ownHeaders(""), signal, timeoutMs: TIMEOUT_MS };
    const record = await store.read((tx) => findExecution(tx, requestId));
    const isAwaited = record?.approval === AWAITED && !isTerminal(record.status);
    if (record !== undefined && isAwaited && reviewId === "") {
      const { review } = await this.#reviews.createReview(reviewOf(record, this.#clock.now()), options);
      await store.write((tx) => nameReview(tx, requestId, review?.id ?? ""));
      return;
    }
    if (reviewId !== "" && record !== undefined) {
      const decided =
        record.approval === GIVEN
          ? this.#reviews.decideReview(
              { id: reviewId, verdict: ReviewVerdict.APPROVED, reviewer: record.buyerPrincipal },
              options,
            )
          : this.#reviews.withdrawReview({ id: reviewId, reason: "the execution has ended" }, options);
      await decided.catch((error: unknown) => {
        if (!OVER.has(reasonOf(error))) throw error;
      });
    }
    await store.write((tx) => deleteReview(tx, requestId));
  }

  async #follow(signal: AbortSignal, heard: () => void): Promise<void> {
    const { store } = this.#engine;
    const afterSequence = BigInt(await store.read((tx) => this.#cursor.read(tx)));
    const options = { headers: ownHeaders(""), signal };
    for await (const { sequence, review } of this.#reviews.watchReviews({ afterSequence }, options)) {
      heard();
      await store.write(async (tx) => {
        if (review !== undefined) await this.#apply(tx, review);
        await this.#cursor.advance(tx, Number(sequence));
      });
    }
  }

  /** What a decision in the queue of reviews makes of the execution that it is about. */
  async #apply(tx: WriteTx, { kind, state, subject, reason }: Review): Promise<void> {
    if (kind !== ReviewKind.START_APPROVAL) return;
    const record = await findExecution(tx, subject);
    if (record?.approval !== AWAITED || isTerminal(record.status)) return;
    if (state === ReviewState.APPROVED) {
      if (this.#clock.now() < record.startBy) await this.#give(tx, record);
    } else if (state === ReviewState.REJECTED || state === ReviewState.CHANGES_REQUESTED) {
      await this.#refuse(tx, record, reason);
    }
  }
}

/** Refusals of a review that is decided already, or never was. */
const OVER: ReadonlySet<ErrorReason | undefined> = new Set([
  ErrorReason.REVIEW_CLOSED,
  ErrorReason.REVIEW_NOT_FOUND,
  ErrorReason.CALLER_NOT_ALLOWED,
  ErrorReason.CONFLICT_OF_INTEREST,
]);

function reviewOf({ request, buyerPrincipal, sellerPrincipal, startBy }: ExecutionRecord, nowMs: number) {
  const seconds = Math.min(Math.max(1, Math.ceil((startBy - nowMs) / 1000)), MAX_REVIEW_SECONDS);
  return {
    requestId: `execution:${request.requestId}`.slice(0, 128),
    kind: ReviewKind.START_APPROVAL,
    subject: request.requestId,
    title: `Start of ${request.offerId}, version ${request.offerVersion}`.slice(0, 256),
    author: sellerPrincipal === buyerPrincipal ? "" : sellerPrincipal,
    reviewers: [buyerPrincipal],
    timeoutSeconds: BigInt(seconds),
  };
}
