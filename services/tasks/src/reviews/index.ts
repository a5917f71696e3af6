import { createClient } from "@connectrpc/connect";
import { ReviewKind, ReviewService } from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import { fromConnectError, Outbox, ownHeaders, type ServiceDeps, StreamFollower } from "@depute/service";
import type { WriteTx } from "@depute/store";
import { defineModule, type OpenModule, type TaskEngine } from "../core/index.ts";
import { REVIEW_SETTINGS } from "./settings.ts";
import { deleteCall, firstCalls, type ReviewCallRow } from "./store/call-rows.ts";
import { REVIEW_MIGRATIONS } from "./store/migrations.ts";
import { Oversight } from "./work/oversight.ts";

/** The cursor's name in the store. */
const CURSOR = "reviews";

/** How long the verifier has for an answer, milliseconds. */
const TIMEOUT_MS = 10_000;

/** Refusals that another try would meet as well. */
const FINAL: ReadonlySet<ErrorReason> = new Set([
  ErrorReason.REVIEW_CLOSED,
  ErrorReason.REVIEW_NOT_FOUND,
  ErrorReason.REQUEST_ID_REUSED,
  ErrorReason.INVALID_REQUEST,
  ErrorReason.CALLER_NOT_ALLOWED,
  ErrorReason.CONFLICT_OF_INTEREST,
  ErrorReason.INQUIRY_ANSWERED,
  ErrorReason.INQUIRY_NOT_FOUND,
]);

/** The reviews of held results. The verifier decides. */
export const reviews = defineModule({
  name: "reviews",
  settings: REVIEW_SETTINGS,
  migrations: REVIEW_MIGRATIONS,
  open(deps, engine, settings) {
    const oversight = new Oversight({
      engine,
      clock: deps.clock,
      reviews: createClient(ReviewService, deps.connect("verifier")),
      timeoutMs: settings.tasksReviewTimeout,
      escalation: [...new Set([...settings.tasksReviewEscalation, ...settings.orchestratorPrincipals])],
    });
    engine.observe((tx, change) => oversight.observe(tx, change));
    engine.provideReviews(oversight);
    return bridge(deps, engine, oversight);
  },
});

/** Makes the calls that the verifier is owed, and follows its reviews. */
function bridge({ log, timers, connect }: ServiceDeps, engine: TaskEngine, oversight: Oversight): OpenModule {
  const { store } = engine;
  const cursor = engine.cursor(CURSOR);
  const reviews = createClient(ReviewService, connect("verifier"));

  async function call(row: ReviewCallRow, signal: AbortSignal): Promise<void> {
    const { method, reviewId: id, number, answer, answeredBy } = row;
    const own = { headers: ownHeaders(""), signal, timeoutMs: TIMEOUT_MS };
    if (method === "create") await oversight.create(id, own);
    else if (method === "answer") await reviews.answerReviewInquiry({ id, number, answer, answeredBy }, own);
    else await reviews.withdrawReview({ id, reason: "the result is no longer held" }, own);
  }

  const outbox = new Outbox<ReviewCallRow>({
    timers,
    log,
    what: "the verifier cannot be told of held results",
    first: (limit) => store.read((tx) => firstCalls(tx, limit)),
    drop: (row) => store.write((tx) => deleteCall(tx, row)),
    async tell(row, signal) {
      try {
        await oversight.alone(row.taskId, () => call(row, signal));
      } catch (thrown) {
        const refusal = fromConnectError(thrown);
        if (!FINAL.has(refusal.reason)) throw refusal;
        log.debug({ err: refusal, task: row.taskId, method: row.method }, "the verifier refuses the call");
        if (row.method === "create") await oversight.giveUp(row.reviewId, `no review: ${refusal.message}`);
      }
    },
  });
  oversight.onOwed(() => outbox.wake());

  const follower = new StreamFollower({
    what: "reviews",
    timers,
    log,
    async follow(signal, heard) {
      const afterSequence = BigInt(await store.read((tx) => cursor.read(tx)));
      const watched = reviews.watchReviews(
        { afterSequence, kind: ReviewKind.OVERSIGHT },
        { signal, headers: ownHeaders("") },
      );
      for await (const { sequence, review } of watched) {
        heard();
        if (review === undefined) continue;
        const follow = (tx: WriteTx) => cursor.advance(tx, Number(sequence));
        await oversight.apply(review, follow).catch((error: unknown) => {
          if (signal.aborted || error instanceof DeputeError) throw error;
          // A fault with one review must not hold up the others. Its result stays held until the task expires.
          log.error(
            { err: error, task: review.subject, review: review.id },
            "a change of a review could not be applied",
          );
          return store.write(follow);
        });
      }
    },
  });

  return {
    start() {
      outbox.start();
      follower.start();
    },
    async close() {
      await Promise.all([outbox.close(), follower.close()]);
    },
  };
}
