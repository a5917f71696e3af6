import { type FollowedReviews, ReviewQueue, type ReviewQueueDeps } from "@depute/service";
import type { TaskEngine } from "./port.ts";

/** The reviews of one kind that a module follows. */
export interface ModuleReviews extends Pick<FollowedReviews, "kind" | "streamName" | "apply"> {
  /** The name under which the store keeps the position in the verifier's stream of reviews. */
  readonly cursor: string;
}

/** Opens a module's access to the verifier's review queue. */
export function openReviewQueue(
  deps: ReviewQueueDeps,
  engine: TaskEngine,
  { cursor: name, ...followed }: ModuleReviews,
): ReviewQueue {
  const { store } = engine;
  return new ReviewQueue(deps, {
    ...followed,
    store,
    cursor: engine.cursor(name),
    lease: engine.lease(name),
  });
}
