import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Value } from "@bufbuild/protobuf/wkt";
import {
  type CreateReviewRequestSchema,
  ReviewKind,
} from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { LOCAL_PRINCIPAL } from "@depute/service";
import { checkValue, MAX_VALUE_BYTES, type TaskRecord } from "../../core/index.ts";
import type { HeldReview } from "../store/review-rows.ts";

/** The largest result that a review shows, bytes as JSON; a larger one is read with GetTask. */
const MAX_CONTENT_BYTES = MAX_VALUE_BYTES / 4;

/** Characters that a review takes of a reason, a question or an answer. */
const MAX_WORDS = 4000;

/**
 * The request for the review of a held result. It is the same whenever it is made, because the verifier compares repetitions.
 *
 * @param escalation principals that may decide as well from the escalation on
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
    id: reviewId,
    requestId: reviewId,
    kind: ReviewKind.OVERSIGHT,
    subject: taskId,
    title: `the result of ${task.agentId}`,
    contentReference: { uri: `depute:tasks/${taskId}`, mediaType: "application/json" },
    author,
    reviewers: [reviewer],
    escalationReviewers: escalation.filter((one) => one !== author && one !== reviewer),
    timeoutSeconds: BigInt(Math.max(1, Math.ceil(timeoutMs / 1000))),
    ...(result !== undefined && isSmall(result) ? { content: result } : {}),
  };
}

/** Words as a review takes them: some, and not too many. */
export function shortened(text: string): string {
  const words = text.trim() === "" ? "(nothing was said)" : text;
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
