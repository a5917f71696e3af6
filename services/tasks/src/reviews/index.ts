import { createClient } from "@connectrpc/connect";
import { ReviewKind, ReviewService } from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import { fromConnectError, Outbox, ownHeaders, type ServiceDeps, StreamFollower } from "@depute/service";
import type { WriteTx } from "@depute/store";
import { defineModule, type OpenModule, type TaskEngine } from "../core/index.ts";
import { type AnswerRow, dropAnswer, firstAnswers } from "./inquiry-rows.ts";
import { REVIEW_MIGRATIONS } from "./migrations.ts";
import { Oversight } from "./oversight.ts";
import { forgetReviews } from "./purge-rows.ts";
import { firstToTell, nextReviewTime, noteTold, OWED, type ReviewRow, readReview } from "./rows.ts";
import { REVIEW_SETTINGS } from "./settings.ts";

/** The cursor's name in the store. */
const CURSOR = "reviews";

/** How long the queue has for an answer, milliseconds. */
const TIMEOUT_MS = 10_000;

/** The longest time without a look at what is overdue, milliseconds. */
const MAX_WAIT_MS = 30_000;

/** The shortest time between two looks, milliseconds. */
const MIN_WAIT_MS = 250;

/** Refusals that another try would meet as well: the review is over, or gone, or its result is no longer held. */
const FINAL: ReadonlySet<ErrorReason> = new Set([
  ErrorReason.REVIEW_CLOSED,
  ErrorReason.REVIEW_NOT_FOUND,
  ErrorReason.REQUEST_ID_REUSED,
  ErrorReason.INVALID_REQUEST,
  ErrorReason.CALLER_NOT_ALLOWED,
  ErrorReason.INQUIRY_ANSWERED,
  ErrorReason.INQUIRY_NOT_FOUND,
]);

/** The reviews of held results: bridges them and the queue of reviews, which decides. */
export const reviews = defineModule({
  name: "reviews",
  settings: REVIEW_SETTINGS,
  services: [],
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
    engine.onPurge(forgetReviews);
    engine.provideReviews(oversight);
    return bridge(deps, engine, oversight);
  },
});

/** Tells the queue of held results, follows what it decides, and sees to the time. */
function bridge(
  { log, timers, clock, connect }: ServiceDeps,
  engine: TaskEngine,
  oversight: Oversight,
): OpenModule {
  const { store } = engine;
  const cursor = engine.cursor(CURSOR);
  const reviews = createClient(ReviewService, connect("verifier"));
  const closing = new AbortController();
  const own = (signal: AbortSignal) => ({ headers: ownHeaders(""), signal, timeoutMs: TIMEOUT_MS });

  const outbox = new Outbox<ReviewRow>({
    timers,
    log,
    what: "the queue of reviews cannot be told of a held result",
    first: (limit) => store.read((tx) => firstToTell(tx, limit)),
    drop: (row) => store.write((tx) => noteTold(tx, row)),
    async tell(row, signal) {
      const refused = (thrown: unknown) => {
        const refusal = fromConnectError(thrown);
        if (!FINAL.has(refusal.reason)) throw refusal;
        log.debug({ err: refusal, task: row.taskId }, "the queue of reviews does not take it");
      };
      if (row.todo === OWED.CREATE) await oversight.create(row, own(signal)).catch(refused);
      const { reviewId: id = "" } = (await store.read((tx) => readReview(tx, row.reviewKey))) ?? {};
      if (row.todo !== OWED.WITHDRAW || id === "") return;
      await reviews
        .withdrawReview({ id, reason: "the result is no longer held" }, own(signal))
        .catch(refused);
    },
  });

  const answers = new Outbox<AnswerRow>({
    timers,
    log,
    what: "the queue of reviews cannot be told of an answer",
    first: (limit) => store.read((tx) => firstAnswers(tx, limit)),
    drop: (row) => store.write((tx) => dropAnswer(tx, row)),
    async tell({ reviewKey, number, answer, answeredBy }, signal) {
      const { reviewId: id = "" } = (await store.read((tx) => readReview(tx, reviewKey))) ?? {};
      if (id === "") return;
      await reviews
        .answerReviewInquiry({ id, number, answer, answeredBy }, own(signal))
        .catch((thrown: unknown) => {
          const refusal = fromConnectError(thrown);
          if (!FINAL.has(refusal.reason)) throw refusal;
          log.debug({ err: refusal, review: id }, "the queue of reviews does not take the answer");
        });
    },
  });

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
        await oversight.applyDecided(review, follow).catch((error: unknown) => {
          if (signal.aborted || error instanceof DeputeError) throw error;
          // A fault with one must not hold up the others; its deadline has it looked at again.
          log.error(
            { err: error, task: review.subject, review: review.id },
            "a decision could not be applied",
          );
          return store.write(follow);
        });
      }
    },
  });

  let cancel = () => {};
  let looking: Promise<void> | undefined;
  const look = async (): Promise<void> => {
    await oversight.applyTime(own(closing.signal)).catch((error: unknown) => {
      if (!closing.signal.aborted)
        log.warn({ err: error }, "overdue reviews cannot be looked at; trying again");
    });
  };
  const sleep = async (): Promise<void> => {
    if (closing.signal.aborted) return;
    const nextMs = await store.read(nextReviewTime).catch(() => undefined);
    if (closing.signal.aborted) return;
    const waitMs = Math.min(
      Math.max(MIN_WAIT_MS, (nextMs ?? Number.POSITIVE_INFINITY) - clock.now()),
      MAX_WAIT_MS,
    );
    cancel();
    cancel = timers.after(waitMs, () => {
      looking ??= look().then(() => {
        looking = undefined;
        return sleep();
      });
    });
  };
  oversight.onWork(
    () => {
      outbox.wake();
      answers.wake();
    },
    () => {
      if (looking === undefined) void sleep();
    },
  );
  return {
    start() {
      outbox.start();
      answers.start();
      follower.start();
      void sleep();
    },
    async close() {
      closing.abort();
      cancel();
      await Promise.all([outbox.close(), answers.close(), follower.close(), looking]);
    },
  };
}
