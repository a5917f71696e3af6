import { type CallOptions, type Client, createClient } from "@connectrpc/connect";
import {
  type Review,
  type ReviewKind,
  ReviewService,
} from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import { ownHeaders, reasonOf, type ServiceDeps, StreamFollower } from "@depute/service";
import type { WriteTx } from "@depute/store";
import type { TaskEngine } from "./port.ts";

/** Timeout of a call to the verifier, in milliseconds. */
const TIMEOUT_MS = 10_000;

/** Errors that a retry would get again. */
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

/** The reviews of one kind that a module follows. */
export interface FollowedReviews {
  readonly kind: ReviewKind;
  /** The name under which the position in the verifier's stream of reviews is stored. */
  readonly cursor: string;
  /** The name of the stream in log lines. */
  readonly streamName: string;
  /** Applies a change of a review. `advance` stores the position in the stream in the same transaction. */
  apply(review: Review, advance: (tx: WriteTx) => Promise<void>): Promise<void>;
}

/** A module's access to the verifier's review queue: the calls, and the changes of the module's reviews. */
export class ReviewQueue {
  readonly calls: Client<typeof ReviewService>;
  readonly #follower: StreamFollower;

  constructor({ log, timers, connect }: Deps, engine: TaskEngine, followed: FollowedReviews) {
    const { store } = engine;
    const cursor = engine.cursor(followed.cursor);
    this.calls = createClient(ReviewService, connect("verifier"));
    this.#follower = new StreamFollower({
      streamName: followed.streamName,
      lease: engine.lease(followed.cursor),
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
            // A fault in one review must not delay the other reviews. The task of the failed review waits until its own
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

type Deps = Pick<ServiceDeps, "log" | "timers" | "connect">;

/** Returns the options of a call that the platform makes in its own name. */
export function reviewCallOptions(signal: AbortSignal): CallOptions {
  return { headers: ownHeaders(""), signal, timeoutMs: TIMEOUT_MS };
}

/** Whether a retry would get the same refusal from the verifier. */
export function isFinalRefusal(error: unknown): boolean {
  return FINAL.has(reasonOf(error));
}
