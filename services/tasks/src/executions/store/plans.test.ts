import type { ReadTx } from "@depute/store";
import { expect, test } from "vitest";
import { plansOf } from "../../testing/plans.ts";
import { dueCallbacks, earliestCallback } from "./callback-rows.ts";
import {
  countRejected,
  dueExecutions,
  earliestDue,
  findByKey,
  findByReceipt,
  findByTask,
  findExecution,
  listExecutions,
  loadOf,
  spentOnParts,
} from "./execution-rows.ts";
import { EXECUTION_MIGRATIONS } from "./migrations.ts";
import { reviewsToTell, verificationsToTell } from "./outbox-rows.ts";
import { endedExecutions, rejectedExecutions } from "./purge-rows.ts";
import { readReceipts, readSettlements } from "./receipt-rows.ts";

const place = { createMs: 1, requestId: "r" };

// A query that scans or sorts becomes slower with every past execution, so no query may do either.
test.each<[string, (tx: ReadTx) => Promise<unknown>, readonly string[]]>([
  ["an execution", (tx) => findExecution(tx, "r"), ["request_id=?"]],
  ["the execution of a task", (tx) => findByTask(tx, "t"), ["executions_by_task"]],
  ["the execution of a receipt", (tx) => findByReceipt(tx, "r"), ["execution_receipts_by_id"]],
  ["the execution of an idempotency key", (tx) => findByKey(tx, "b", "k"), ["executions_by_key"]],
  [
    "the number of open executions of an offer",
    (tx) => loadOf(tx, "o", 9),
    ["executions_open", "executions_taken"],
  ],
  ["the cost of child executions", (tx) => spentOnParts(tx, "r"), ["executions_by_parent"]],
  [
    "executions with a passed verification deadline",
    (tx) => dueExecutions(tx, 1, 9),
    ["executions_to_verify"],
  ],
  ["the next verification deadline", (tx) => earliestDue(tx), ["executions_to_verify"]],
  [
    "purchases",
    (tx) => listExecutions(tx, "buyer_id", "b", place, 9),
    ["executions_by_buyer", "request_id=?"],
  ],
  [
    "sales",
    (tx) => listExecutions(tx, "seller_id", "s", undefined, 9),
    ["executions_by_seller", "request_id=?"],
  ],
  [
    "the number of a buyer's rejected requests",
    (tx) => countRejected(tx, "b"),
    ["executions_rejected_by_buyer"],
  ],
  ["receipts", (tx) => readReceipts(tx, "r", 1), ["request_id=?"]],
  ["changes of a payment", (tx) => readSettlements(tx, "r"), ["request_id=?"]],
  ["due review calls", (tx) => reviewsToTell(tx, 9), ["execution_reviews_to_tell"]],
  ["due verification reports", (tx) => verificationsToTell(tx, 1, 9), ["execution_verifications_by_retry"]],
  ["due callbacks", (tx) => dueCallbacks(tx, 1, 9), ["execution_callbacks_by_next", "request_id=?"]],
  ["the time of the next callback", (tx) => earliestCallback(tx), ["execution_callbacks_by_next"]],
  ["executions that are due for the purge", (tx) => endedExecutions(tx, 1, 9), ["executions_by_end"]],
  [
    "rejected requests that are due for the purge",
    (tx) => rejectedExecutions(tx, 1, 9),
    ["executions_rejected"],
  ],
])("%s: found by an index, in its order", async (_, query, indexes) => {
  const plans = (await plansOf(EXECUTION_MIGRATIONS, query)).filter(
    (detail) => !detail.startsWith("CORRELATED"),
  );
  expect(plans).toHaveLength(indexes.length);
  for (const [at, index] of indexes.entries()) {
    expect(plans[at]).toMatch(/^(SEARCH|SCAN \w+ USING (COVERING )?INDEX)/);
    expect(plans[at]).toContain(index);
  }
});
