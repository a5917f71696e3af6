import type { ReadTx } from "@depute/store";
import { expect, test } from "vitest";
import { plansOf } from "../../testing/plans.ts";
import { PUSH_MIGRATIONS } from "./migrations.ts";
import { dueCancels, nextCancelMs, openRemote } from "./remote-rows.ts";

test.each<[string, (tx: ReadTx) => Promise<unknown>, string]>([
  ["tasks at endpoints", (tx) => openRemote(tx, "t"), "push_remotes_by_task"],
  ["due cancellations", (tx) => dueCancels(tx, 1, 9), "push_remotes_owed"],
  ["the time of the next cancellation", (tx) => nextCancelMs(tx), "push_remotes_owed"],
])("%s is found by an index, in its order", async (_name, query, index) => {
  const plans = await plansOf(PUSH_MIGRATIONS, query);
  expect(plans).toHaveLength(1);
  expect(plans[0]).toMatch(/^(SEARCH|SCAN \w+ USING (COVERING )?INDEX)/);
  expect(plans[0]).toContain(index);
});
