import type { Migration } from "@depute/store";

/**
 * Held results under review, and an outbox of calls to the verifier. This service chooses `review_id`, so the id exists
 * before the verifier responds. `task_review_inquiries` records the questions that the result's author has received.
 */
const REVIEWS = `
CREATE TABLE task_reviews (
  review_id TEXT PRIMARY KEY,
  task_id TEXT NOT NULL UNIQUE,
  timeout_ms BIGINT NOT NULL,
  escalated BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE task_review_inquiries (
  review_id TEXT NOT NULL,
  number BIGINT NOT NULL,
  answered BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (review_id, number)
);

CREATE TABLE task_review_calls (
  place BIGINT PRIMARY KEY,
  method TEXT NOT NULL,
  review_id TEXT NOT NULL,
  task_id TEXT NOT NULL,
  number BIGINT NOT NULL DEFAULT 0,
  answer TEXT NOT NULL DEFAULT '',
  answered_by TEXT NOT NULL DEFAULT ''
);
`;

// The time until which a replica's call about the review may be in progress, epoch milliseconds.
const CALLS = `
ALTER TABLE task_reviews ADD COLUMN calling_ms BIGINT NOT NULL DEFAULT 0;
`;

/** The tables of the reviews of held results. */
export const REVIEW_MIGRATIONS: readonly Migration[] = [
  { id: 1, name: "reviews", sql: REVIEWS },
  { id: 2, name: "calls in progress", sql: CALLS },
];
