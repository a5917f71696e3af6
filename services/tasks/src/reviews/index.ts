import { createClient } from "@connectrpc/connect";
import { ReviewKind, ReviewService } from "@depute/contracts/depute/verifier/v1/review_service_pb";
import {
  fromConnectError,
  isFinalRefusal,
  Outbox,
  reviewCallOptions,
  type ServiceDeps,
} from "@depute/service";
import { defineModule, type OpenModule, openReviewQueue, type TaskEngine } from "../core/index.ts";
import { REVIEW_SETTINGS } from "./settings.ts";
import { deleteCall, firstCalls, type ReviewCallRow } from "./store/call-rows.ts";
import { REVIEW_MIGRATIONS } from "./store/migrations.ts";
import { FOLLOWED, Oversight } from "./work/oversight.ts";

/** The reviews of held results. The verifier service stores the reviews and their decisions. */
export const reviews = defineModule({
  name: "reviews",
  settings: REVIEW_SETTINGS,
  migrations: REVIEW_MIGRATIONS,
  open(deps, engine, settings) {
    const oversight = new Oversight({
      engine,
      clock: deps.clock,
      timers: deps.timers,
      isShared: deps.isReplicated,
      reviews: createClient(ReviewService, deps.connect("verifier")),
      timeoutMs: settings.tasksReviewTimeout,
      escalation: [...new Set([...settings.tasksReviewEscalation, ...settings.orchestratorPrincipals])],
    });
    engine.observe((tx, change) => oversight.observe(tx, change), FOLLOWED);
    engine.provideReviews(oversight);
    return bridge(deps, engine, oversight);
  },
});

/** Runs the outbox of calls to the verifier service, and applies changes of the verifier's reviews. */
function bridge(deps: ServiceDeps, engine: TaskEngine, oversight: Oversight): OpenModule {
  const { log, timers } = deps;
  const { store } = engine;
  const queue = openReviewQueue(deps, engine, {
    kind: ReviewKind.OVERSIGHT,
    cursor: "reviews",
    streamName: "reviews",
    apply: (review, advance) => oversight.apply(review, advance),
  });

  async function call(row: ReviewCallRow, signal: AbortSignal): Promise<void> {
    const { method, reviewId: id, number, answer, answeredBy } = row;
    const ownOptions = reviewCallOptions(signal);
    if (method === "create") await oversight.create(id, ownOptions);
    else if (method === "answer")
      await queue.calls.answerReviewInquiry({ reviewId: id, number, answer, answeredBy }, ownOptions);
    else
      await queue.calls.withdrawReview({ reviewId: id, reason: "the result is no longer held" }, ownOptions);
  }

  const outbox = new Outbox<ReviewCallRow>({
    timers,
    log,
    lease: engine.lease("review-calls"),
    failureMessage: "calls about held results could not be sent to the verifier",
    first: (limit) => store.read((tx) => firstCalls(tx, limit)),
    drop: (row) => store.write((tx) => deleteCall(tx, row)),
    async tell(row, signal) {
      try {
        await oversight.alone(row.taskId, () => call(row, signal));
      } catch (thrown) {
        const refusal = fromConnectError(thrown);
        if (!isFinalRefusal(refusal)) throw refusal;
        log.debug(
          { err: refusal, task: row.taskId, method: row.method },
          "the verifier refused a call about a held result",
        );
        if (row.method === "create")
          await oversight.giveUp(row.reviewId, `the verifier refused the review: ${refusal.message}`);
      }
    },
  });
  oversight.onOwed(() => outbox.wake());

  return {
    start() {
      outbox.start();
      queue.start();
    },
    async close() {
      await Promise.all([outbox.close(), queue.close()]);
    },
  };
}
