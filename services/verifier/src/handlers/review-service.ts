import { create, fromJsonString } from "@bufbuild/protobuf";
import { durationMs, ValueSchema } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { Role } from "@depute/contracts/depute/rpc/v1/method_options_pb";
import {
  type AnswerReviewInquiryRequest,
  type ContentReference as ContentReferenceMessage,
  type CreateReviewRequest,
  type DecideReviewRequest,
  type GetReviewRequest,
  type InquireReviewRequest,
  ReviewKind as Kind,
  type ListReviewsRequest,
  type Review as ReviewMessage,
  ReviewSchema,
  type ReviewService,
  ReviewVerdict,
  ReviewState as State,
  type WatchReviewsRequest,
  type WithdrawReviewRequest,
} from "@depute/contracts/depute/verifier/v1/review_service_pb";
import {
  DeputeError,
  decodeBase64Url,
  decodePageToken,
  ErrorReason,
  encodeBase64Url,
  encodePageToken,
  invalid,
  owningOrganization,
  pageSize,
  toTimestamp,
} from "@depute/core";
import { AnswerRoom, bytesOf, countJsonValues, follow, type Identity, mayActFor } from "@depute/service";
import { readValue } from "../json-value.ts";
import { REVIEW_TOPIC, reviewNotFound } from "../reviews.ts";
import {
  type ContentReference,
  DEFAULT_REVIEW_TIMEOUT_MS,
  type Inquiry,
  isEscalated,
  mayRead,
  type Review,
  type ReviewKind,
  type ReviewState,
  stateOf,
  type Verdict,
} from "../rules/review.ts";
import { listInquiries } from "../store/inquiries.ts";
import { getReview, getReviewContent, listChanges, listReviews, listReviewsOf } from "../store/reviews.ts";
import type { Verifier } from "../verifier.ts";

const KINDS: Record<ReviewKind, Kind> = {
  human_review: Kind.HUMAN_REVIEW,
  oversight: Kind.OVERSIGHT,
  start_approval: Kind.START_APPROVAL,
  grant: Kind.GRANT,
};

const STATES: Record<ReviewState, State> = {
  pending: State.PENDING,
  approved: State.APPROVED,
  changes_requested: State.CHANGES_REQUESTED,
  rejected: State.REJECTED,
  withdrawn: State.WITHDRAWN,
  timed_out: State.TIMED_OUT,
};

const VERDICTS: Partial<Record<ReviewVerdict, Verdict>> = {
  [ReviewVerdict.APPROVED]: "approved",
  [ReviewVerdict.CHANGES_REQUESTED]: "changes_requested",
  [ReviewVerdict.REJECTED]: "rejected",
};

/**
 * Maximum number of reviews that one call examines for a page. So a filter with few matches does not read the whole
 * queue.
 */
const MAX_LOOKED_AT = 2000;
const POLL_MS = 5_000;

/**
 * Handles the calls of ReviewService: reviews of outputs (DelegateOS 6.6), approvals by CAP's overseer, approvals
 * before an Agenta execution starts, and decisions on proposed grants.
 */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a table of methods, each with a few lines of its own
export function reviewService(verifier: Verifier): ServiceImpl<typeof ReviewService> {
  const { store, clock, timers, bus, authority, reviews, stopping } = verifier;
  const sees = (identity: Identity, review: Review) =>
    identity.local || mayRead(review, identity, clock.now());

  return {
    async createReview(request: CreateReviewRequest, context: HandlerContext) {
      const identity = await authority.identify(context);
      if (!identity.local) {
        throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "only the platform's services create reviews");
      }
      const kind = wordOf(KINDS, request.kind);
      if (kind === undefined) throw invalid("kind", "is required");
      const content = request.content === undefined ? undefined : readValue(request.content, "content").text;
      const review = await reviews.create({
        id: request.reviewId || undefined,
        requestId: request.requestId,
        kind,
        creator: identity.principal,
        organization: owningOrganization(identity, undefined),
        subject: request.subject,
        title: request.title,
        author: request.author,
        reviewers: request.reviewers,
        escalationReviewers: request.escalationReviewers,
        // If the list is empty, the member is undefined. Requests without roles then keep the digest that older
        // versions stored.
        reviewerRoles: request.reviewerRoles.length > 0 ? ["operator"] : undefined,
        contentReference: referenceOf(request.contentReference),
        timeoutMs: (request.timeout && durationMs(request.timeout)) || DEFAULT_REVIEW_TIMEOUT_MS,
        escalateAfterMs: (request.escalateAfter && durationMs(request.escalateAfter)) || undefined,
        content,
      });
      return { review: toMessage(review, clock.now()) };
    },

    async getReview({ reviewId: id }: GetReviewRequest, context: HandlerContext) {
      const identity = await authority.identify(context);
      return store.read(async (tx) => {
        const review = await getReview(tx, id);
        if (review === undefined || !sees(identity, review)) throw reviewNotFound(id);
        const content = await getReviewContent(tx, id);
        return {
          review: {
            ...toMessage(review, clock.now()),
            inquiries: (await listInquiries(tx, id)).map(inquiryMessage),
            ...(content !== undefined && contentMessage(content)),
          },
        };
      });
    },

    // biome-ignore lint/complexity/noExcessiveCognitiveComplexity: one pass over the rows, which filters, page size and bytes end
    async listReviews(request: ListReviewsRequest, context: HandlerContext) {
      const identity = await authority.identify(context);
      const name = request.reviewer || (identity.local ? undefined : identity.principal);
      const { kind, state, subject } = request;
      const filters = { list: "reviews", reader: name, kind, state, ...(subject !== "" && { subject }) };
      const after = decodePageToken(request.pageToken, filters);
      if (name !== undefined && !mayActFor(identity, name)) return { reviews: [], nextPageToken: "" };
      const size = pageSize(request.pageSize);
      const now = clock.now();
      const reader = name === undefined ? undefined : { principal: name, roles: identity.roles };
      const rows = await store.read((tx) =>
        subject === ""
          ? listReviews(tx, reader, MAX_LOOKED_AT, after)
          : listReviewsOf(tx, subject, MAX_LOOKED_AT, after),
      );
      const reviewMessages: ReviewMessage[] = [];
      const room = new AnswerRoom();
      let last: Review | undefined;
      for (const review of rows) {
        if (reviewMessages.length === size) break;
        const before = last;
        last = review;
        if (reader !== undefined && !mayRead(review, reader, now)) continue;
        if (kind !== Kind.UNSPECIFIED && KINDS[review.kind] !== kind) continue;
        if (state !== State.UNSPECIFIED && STATES[stateOf(review, now)] !== state) continue;
        const message = create(ReviewSchema, toMessage(review, now));
        if (!room.takes(bytesOf(ReviewSchema, message))) {
          last = before;
          break;
        }
        reviewMessages.push(message);
      }
      const more = last !== undefined && (last !== rows.at(-1) || rows.length === MAX_LOOKED_AT);
      return {
        reviews: reviewMessages,
        nextPageToken: more && last !== undefined ? encodePageToken([last.createTime, last.id], filters) : "",
      };
    },

    async *watchReviews(request: WatchReviewsRequest, context: HandlerContext) {
      const identity = await authority.identify(context);
      if (request.sendStart) yield { sequence: request.afterSequence };
      const changes = follow({
        read: (after, limit) => store.read((tx) => listChanges(tx, after, limit)),
        position: ({ sequence }) => sequence,
        after: Number(request.afterSequence),
        wake: (listener) => bus.subscribe(REVIEW_TOPIC, listener),
        pollMs: POLL_MS,
        timers,
        signal: AbortSignal.any([context.signal, stopping]),
      });
      for await (const { sequence, reviewId } of changes) {
        const reviewPage = await store.read(async (tx) => ({
          review: await getReview(tx, reviewId),
          inquiries: await listInquiries(tx, reviewId),
        }));
        const { review } = reviewPage;
        if (review === undefined || !sees(identity, review)) continue;
        if (request.kind !== Kind.UNSPECIFIED && KINDS[review.kind] !== request.kind) continue;
        const inquiries = reviewPage.inquiries.map(inquiryMessage);
        yield {
          sequence: BigInt(sequence),
          review: { ...toMessage(review, clock.now()), inquiries },
        };
      }
    },

    async decideReview(request: DecideReviewRequest, context: HandlerContext) {
      const identity = await authority.identify(context);
      const verdict = VERDICTS[request.verdict];
      if (verdict === undefined) throw invalid("verdict", "is required");
      const reviewer = reviewerOf(request, identity);
      const { principal: caller, roles } = identity;
      const { reviewId, reason } = request;
      const review = await reviews.decide(reviewId, { verdict, reviewer, reason, roles, caller });
      return { review: toMessage(review, clock.now()) };
    },

    async withdrawReview({ reviewId: id, reason }: WithdrawReviewRequest, context: HandlerContext) {
      const { principal } = await authority.identify(context);
      return { review: toMessage(await reviews.withdraw(id, principal, reason), clock.now()) };
    },

    async inquireReview(request: InquireReviewRequest, context: HandlerContext) {
      const reviewer = reviewerOf(request, await authority.identify(context));
      const { reviewId: id, requestId, text } = request;
      return { inquiry: inquiryMessage(await reviews.inquire(id, { requestId, reviewer, text })) };
    },

    async answerReviewInquiry(request: AnswerReviewInquiryRequest, context: HandlerContext) {
      const { principal } = await authority.identify(context);
      const { reviewId: id, number, answer, answeredBy } = request;
      return { inquiry: inquiryMessage(await reviews.answer(id, number, principal, { answer, answeredBy })) };
    },
  };
}

function wordOf<Word extends string>(words: Record<Word, number>, value: number): Word | undefined {
  return (Object.keys(words) as Word[]).find((word) => words[word] === value);
}

/**
 * Returns the reviewer in whose name the call decides a review or asks a question.
 *
 * @throws DeputeError CALLER_NOT_ALLOWED
 */
function reviewerOf({ reviewer: namedReviewer }: { reviewer: string }, identity: Identity): string {
  const reviewer = namedReviewer || identity.principal;
  if (mayActFor(identity, reviewer)) return reviewer;
  throw new DeputeError(
    ErrorReason.CALLER_NOT_ALLOWED,
    "the caller may not act for this reviewer; use the reviewer's credentials",
  );
}

function referenceOf(message: ContentReferenceMessage | undefined): ContentReference | undefined {
  if (message === undefined) return undefined;
  const { uri, digest, mediaType } = message;
  return { uri, digest: encodeBase64Url(digest), mediaType };
}

function referenceMessage({ uri, digest, mediaType }: ContentReference) {
  return { uri, digest: decodeBase64Url(digest) ?? new Uint8Array(), mediaType };
}

/**
 * Maximum number of JSON values in content that a response contains as a protobuf value. Larger content is in the
 * response as text, because the encoding of its values would block the event loop.
 */
const MAX_CONTENT_VALUES = 4096;

function contentMessage(content: string) {
  const isLarge = countJsonValues(Buffer.from(content), MAX_CONTENT_VALUES) > MAX_CONTENT_VALUES;
  return isLarge ? { contentJson: content } : { content: fromJsonString(ValueSchema, content) };
}

function inquiryMessage({ createTime, answerTime, ...inquiry }: Inquiry) {
  const { number, inquirer, text, answer = "", answeredBy = "" } = inquiry;
  return {
    number,
    inquirer,
    text,
    createTime: toTimestamp(createTime),
    answer,
    answeredBy,
    ...(answerTime !== undefined && { answerTime: toTimestamp(answerTime) }),
  };
}

function toMessage(review: Review, now: number) {
  const { contentReference, decideTime, escalationReviewers } = review;
  return {
    id: review.id,
    kind: KINDS[review.kind],
    state: STATES[stateOf(review, now)],
    subject: review.subject,
    title: review.title,
    author: review.author,
    reviewers: [...review.reviewers],
    escalationReviewers: [...escalationReviewers],
    reviewerRoles: review.reviewerRoles?.length ? [Role.OPERATOR] : [],
    deadlineTime: toTimestamp(review.deadline),
    creator: review.creator,
    organization: review.organization,
    createTime: toTimestamp(review.createTime),
    decidedBy: review.decidedBy ?? "",
    reason: review.reason ?? "",
    escalated: isEscalated(review, now),
    ...(contentReference !== undefined && { contentReference: referenceMessage(contentReference) }),
    ...(escalationReviewers.length > 0 && { escalationTime: toTimestamp(review.escalationTime) }),
    ...(decideTime !== undefined && { decideTime: toTimestamp(decideTime) }),
  };
}
