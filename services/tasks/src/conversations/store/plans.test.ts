import type { ReadTx } from "@depute/store";
import { expect, test } from "vitest";
import { plansOf } from "../../testing/plans.ts";
import { CONVERSATION_MIGRATIONS } from "./migrations.ts";
import { countWebhooks, dueWebhooks, findWebhook, listWebhooks, nextWebhook } from "./webhook-rows.ts";

// A query that scans or sorts becomes slower with every webhook, so no query may do either.
test.each<[string, (tx: ReadTx) => Promise<unknown>, string]>([
  ["a webhook", (tx) => findWebhook(tx, "t", "w"), "task_id=? AND id=?"],
  ["the number of webhooks of a task", (tx) => countWebhooks(tx, "t"), "task_id=?"],
  ["the webhooks of a task", (tx) => listWebhooks(tx, "t", "a", 9), "task_id=? AND id>?"],
  ["due webhooks", (tx) => dueWebhooks(tx, 1, ["a"], 9), "conversation_webhooks_due"],
  ["the time of the next due webhook", (tx) => nextWebhook(tx, 1), "conversation_webhooks_due"],
])("%s: found by an index, in its order", async (_, query, index) => {
  const plans = await plansOf(CONVERSATION_MIGRATIONS, query);
  expect(plans).toHaveLength(1);
  expect(plans[0]).toMatch(/^(SEARCH|SCAN \w+ USING (COVERING )?INDEX)/);
  expect(plans[0]).toContain(index);
});
