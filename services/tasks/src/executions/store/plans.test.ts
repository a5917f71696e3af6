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
  ["that of a task", (tx) => findByTask(tx, "t"), ["executions_by_task"]],
  ["that of a receipt", (tx) => findByReceipt(tx, "r"), ["execution_receipts_by_id"]],
  ["that of a key", (tx) => findByKey(tx, "b", "k"), ["executions_by_key"]],
  ["how busy an offer is", (tx) => loadOf(tx, "o", 9), ["executions_open", "executions_taken"]],
  ["what parts cost", (tx) => spentOnParts(tx, "r"), ["executions_by_parent"]],
  ["what nobody verified in time", (tx) => dueExecutions(tx, 1, 9), ["executions_to_verify"]],
  ["when that is next", (tx) => earliestDue(tx), ["executions_to_verify"]],
  [
    "what was bought",
    (tx) => listExecutions(tx, "buyer_id", "b", place, 9),
    ["executions_by_buyer", "request_id=?"],
  ],
  [
    "what was sold",
    (tx) => listExecutions(tx, "seller_id", "s", undefined, 9),
    ["executions_by_seller", "request_id=?"],
  ],
  ["how many of a buyer were rejected", (tx) => countRejected(tx, "b"), ["executions_rejected_by_buyer"]],
  ["receipts", (tx) => readReceipts(tx, "r", 1), ["request_id=?"]],
  ["changes of a payment", (tx) => readSettlements(tx, "r"), ["request_id=?"]],
  ["reviews to tell", (tx) => reviewsToTell(tx, 9), ["execution_reviews_to_tell"]],
  ["verifications to tell", (tx) => verificationsToTell(tx, 1, 9), ["execution_verifications_by_retry"]],
  ["callbacks to tell", (tx) => dueCallbacks(tx, 1, 9), ["execution_callbacks_by_next", "request_id=?"]],
  ["when the next is", (tx) => earliestCallback(tx), ["execution_callbacks_by_next"]],
  ["what is to be forgotten", (tx) => endedExecutions(tx, 1, 9), ["executions_by_end"]],
  ["rejected ones to be forgotten", (tx) => rejectedExecutions(tx, 1, 9), ["executions_rejected"]],
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
