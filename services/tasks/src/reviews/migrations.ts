import type { Migration } from "@depute/store";

// `todo` is 1 for a review that is to be created at the queue, 2 for one that is to be withdrawn.
const REVIEWS = `
CREATE TABLE task_reviews (
  review_key TEXT PRIMARY KEY,
  task_id TEXT NOT NULL,
  review_id TEXT NOT NULL DEFAULT '',
  is_open BIGINT NOT NULL DEFAULT 1,
  escalated BIGINT NOT NULL DEFAULT 0,
  escalate_ms BIGINT NOT NULL,
  deadline_ms BIGINT NOT NULL,
  todo BIGINT NOT NULL DEFAULT 1,
  place BIGINT
);
CREATE UNIQUE INDEX task_reviews_open ON task_reviews (task_id) WHERE is_open = 1;
CREATE INDEX task_reviews_by_task ON task_reviews (task_id);
CREATE INDEX task_reviews_by_review ON task_reviews (review_id) WHERE review_id <> '';
CREATE INDEX task_reviews_to_tell ON task_reviews (place) WHERE place IS NOT NULL;
CREATE INDEX task_reviews_by_deadline ON task_reviews (deadline_ms) WHERE is_open = 1;
CREATE INDEX task_reviews_by_escalation ON task_reviews (escalate_ms) WHERE is_open = 1 AND escalated = 0;
`;

// What reviewers asked, so that each question reaches the author once, and each answer the queue.
const INQUIRIES = `
CREATE TABLE task_review_inquiries (
  review_key TEXT NOT NULL,
  number BIGINT NOT NULL,
  task_id TEXT NOT NULL,
  answer TEXT NOT NULL DEFAULT '',
  answered_by TEXT NOT NULL DEFAULT '',
  place BIGINT,
  PRIMARY KEY (review_key, number)
);
CREATE INDEX task_review_inquiries_by_task ON task_review_inquiries (task_id);
CREATE INDEX task_review_inquiries_to_tell ON task_review_inquiries (place) WHERE place IS NOT NULL;
`;

/** The reviews of held results, as far as the queue of reviews is told of them and answers. */
export const REVIEW_MIGRATIONS: readonly Migration[] = [
  { id: 1, name: "reviews", sql: REVIEWS },
  { id: 2, name: "inquiries", sql: INQUIRIES },
];
