import { type CallOptions, type Client, createClient } from "@connectrpc/connect";
import {
  type Review,
  type ReviewKind,
  ReviewService,
} from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import type { ReadTx, Store, WriteTx } from "@depute/store";
import { ownHeaders } from "./call-headers.ts";
import { reasonOf } from "./errors-on-wire.ts";
import type { ServiceDeps } from "./module.ts";
import type { WorkLease } from "./shared-work.ts";
import { StreamFollower } from "./stream-follower.ts";

/** Timeout of a call to the verifier, in milliseconds. */
const TIMEOUT_MS = 10_000;

/** The reasons of refusals that a retry would get again. */
const FINAL: ReadonlySet<ErrorReason | undefined> = new Set([
  ErrorReason.REVIEW_CLOSED,
  ErrorReason.REVIEW_NOT_FOUND,
  ErrorReason.REQUEST_ID_REUSED,
  ErrorReason.INVALID_REQUEST,
  ErrorReason.CALLER_NOT_ALLOWED,
  ErrorReason.CONFLICT_OF_INTEREST,
  ErrorReason.INQUIRY_ANSWERED,
  ErrorReason.INQUIRY_NOT_FOUND,
]);

/** The reviews of one kind that a service follows. */
export interface FollowedReviews {
  readonly kind: ReviewKind;
  readonly store: Pick<Store, "read" | "write">;
  /** Reads and stores the position that the service has reached in the verifier's stream of reviews. */
  readonly cursor: {
    read(tx: ReadTx): Promise<number>;
    advance(tx: WriteTx, position: number): Promise<void>;
  };
  /** The lease of the work on the stream; undefined for a service without replicas. */
  readonly lease: WorkLease | undefined;
  /** The name of the stream in log lines. */
  readonly streamName: string;
  /** Applies a change of a review in one transaction, and calls `advance` in this transaction to store the position. */
  apply(review: Review, advance: (tx: WriteTx) => Promise<void>): Promise<void>;
}

/**
 * A service's access to the verifier's review queue: the client for its calls, and the stream of changes of the
 * service's reviews.
 */
export class ReviewQueue {
  readonly calls: Client<typeof ReviewService>;
  readonly #follower: StreamFollower;

  constructor({ log, timers, connect }: ReviewQueueDeps, followed: FollowedReviews) {
    const { store, cursor } = followed;
    this.calls = createClient(ReviewService, connect("verifier"));
    this.#follower = new StreamFollower({
      streamName: followed.streamName,
      lease: followed.lease,
      timers,
      log,
      follow: async (signal, onWake) => {
        const afterSequence = BigInt(await store.read((tx) => cursor.read(tx)));
        const options = { signal, headers: ownHeaders("") };
        const changes = this.calls.watchReviews({ afterSequence, kind: followed.kind }, options);
        for await (const { sequence, review } of changes) {
          onWake();
          if (review === undefined) continue;
          const advance = (tx: WriteTx) => cursor.advance(tx, Number(sequence));
          await followed.apply(review, advance).catch((error: unknown) => {
            if (signal.aborted || error instanceof DeputeError) throw error;
            // A fault in one review must not delay the other reviews. The record whose review failed waits until its
            // time limit.
            const { id, subject } = review;
            log.error({ err: error, subject, review: id }, "a change of a review could not be applied");
            return store.write(advance);
          });
        }
      },
    });
  }

  start(): void {
    this.#follower.start();
  }

  close(): Promise<void> {
    return this.#follower.close();
  }
}

export type ReviewQueueDeps = Pick<ServiceDeps, "log" | "timers" | "connect">;

/** Returns the options of a call that the platform makes on its own behalf. */
export function reviewCallOptions(signal: AbortSignal): CallOptions {
  return { headers: ownHeaders(""), signal, timeoutMs: TIMEOUT_MS };
}

/** Whether a retry would get the same refusal from the verifier. */
export function isFinalRefusal(error: unknown): boolean {
  return FINAL.has(reasonOf(error));
}
