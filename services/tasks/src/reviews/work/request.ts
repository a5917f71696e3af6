import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, type Value } from "@bufbuild/protobuf/wkt";
import {
  type CreateReviewRequestSchema,
  ReviewKind,
} from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { LOCAL_PRINCIPAL } from "@depute/service";
import { checkValue, MAX_VALUE_BYTES, type TaskRecord } from "../../core/index.ts";
import type { HeldReview } from "../store/review-rows.ts";

/** Maximum size of a result inside a review, in bytes of JSON. A reviewer reads a larger result with GetTask. */
const MAX_CONTENT_BYTES = MAX_VALUE_BYTES / 4;

/** Maximum length of a reason, a question or an answer in a review, in characters. */
const MAX_WORDS = 4000;

/**
 * Returns the request for the review of a held result. Equal arguments give an equal request, because the verifier
 * refuses a different request with the same id.
 *
 * @param escalation principals that may decide after half of the timeout
 */
export function requestOf(
  { reviewId, taskId, timeoutMs }: HeldReview,
  { overseerPrincipal, agentPrincipal, task }: TaskRecord,
  result: Value | undefined,
  escalation: readonly string[],
): MessageInitShape<typeof CreateReviewRequestSchema> {
  const reviewer = overseerPrincipal || LOCAL_PRINCIPAL;
  const author = reviewer === agentPrincipal ? "" : agentPrincipal;
  return {
    reviewId,
    requestId: reviewId,
    kind: ReviewKind.OVERSIGHT,
    subject: taskId,
    title: `the result of ${task.agentId}`,
    contentReference: { uri: `depute:tasks/${taskId}`, mediaType: "application/json" },
    author,
    reviewers: [reviewer],
    escalationReviewers: escalation.filter((one) => one !== author && one !== reviewer),
    timeout: durationFromMs(Math.max(1, Math.ceil(timeoutMs / 1000)) * 1000),
    ...(result !== undefined && isSmall(result) ? { content: result } : {}),
  };
}

/** Returns a text that a review accepts: not empty, and cut to the maximum length. */
export function shortened(text: string): string {
  const words = text.trim() === "" ? "(no text)" : text;
  return Array.from(words).slice(0, MAX_WORDS).join("");
}

function isSmall(content: Value): boolean {
  try {
    checkValue(content, "content", MAX_CONTENT_BYTES);
    return true;
  } catch {
    return false;
  }
}
