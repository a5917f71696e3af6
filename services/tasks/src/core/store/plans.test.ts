import type { ReadTx } from "@depute/store";
import { expect, test } from "vitest";
import { plansOf } from "../../testing/plans.ts";
import { tasksUnderBlock } from "./delegation-rows.ts";
import { listTasks } from "./list-rows.ts";
import { CORE_MIGRATIONS } from "./migrations.ts";
import { endedBefore } from "./purge-rows.ts";
import {
  acceptedBy,
  agentsWithWork,
  agentsWithWorkAmong,
  countHeld,
  countHeldByAgent,
  heldBy,
  leasesDueOf,
  waitingTasks,
} from "./queue-rows.ts";
import {
  dueTasks,
  earliestDeadline,
  findAllByExternalId,
  findByExternalId,
  readEvents,
  readTask,
} from "./task-rows.ts";
import { countChildren, countOpenInTree, listBelow, listChildren, openChildren } from "./tree-rows.ts";

const list = {
  delegator: "d",
  agentId: "",
  correlationId: "",
  capabilityId: "",
  statuses: [],
  fromMs: undefined,
  beforeMs: undefined,
};
const place = { createMs: 1, taskId: "t" };

// A query that scans or sorts becomes slower with every finished task, so no query may do either.
test.each<[string, (tx: ReadTx) => Promise<unknown>, string]>([
  ["a task", (tx) => readTask(tx, "t"), "task_id=?"],
  ["a task by its external id", (tx) => findByExternalId(tx, "d", "e", "a"), "tasks_by_external_id"],
  ["tasks by an external id", (tx) => findAllByExternalId(tx, "d", "e", 2), "tasks_by_external_id"],
  ["waiting tasks", (tx) => waitingTasks(tx, { agentId: "a", capabilityIds: [] }, 1, 9), "tasks_queue "],
  [
    "waiting tasks of a capability",
    (tx) => waitingTasks(tx, { agentId: "a", capabilityIds: ["c"] }, 1, 9),
    "tasks_queue_by_capability",
  ],
  ["tasks that a stream holds", (tx) => countHeld(tx, "h"), "tasks_by_holder"],
  ["due tasks", (tx) => dueTasks(tx, 1, 9), "tasks_by_deadline"],
  ["the next due task", (tx) => earliestDeadline(tx), "tasks_by_deadline"],
  ["a list", (tx) => listTasks(tx, list, undefined, 9), "tasks_by_delegator"],
  ["the rest of a list", (tx) => listTasks(tx, list, place, 9), "tasks_by_delegator"],
  ["an agent's list", (tx) => listTasks(tx, { ...list, agentId: "a" }, place, 9), "tasks_by_agent"],
  [
    "a list by correlation",
    (tx) => listTasks(tx, { ...list, correlationId: "c" }, place, 9),
    "tasks_by_correlation",
  ],
  ["open child tasks", (tx) => openChildren(tx, "t"), "tasks_open_by_parent"],
  ["the number of child tasks", (tx) => countChildren(tx, "t"), "tasks_by_parent"],
  ["the number of open tasks in a tree", (tx) => countOpenInTree(tx, "t"), "tasks_open_by_root"],
  ["the rest of a tree", (tx) => listBelow(tx, "t", place, 9), "tasks_by_root"],
  [
    "a list of a time range",
    (tx) => listTasks(tx, { ...list, fromMs: 1, beforeMs: 5 }, place, 9),
    "tasks_by_delegator",
  ],
  ["the rest of the child tasks", (tx) => listChildren(tx, "t", place, 9), "tasks_by_parent"],
  ["tasks that a worker has not started", (tx) => acceptedBy(tx, "h", true, 1), "tasks_by_holder"],
  ["agents with waiting tasks", (tx) => agentsWithWork(tx, "a", 1, 9), "tasks_queue "],
  ["leases that end soon", (tx) => leasesDueOf(tx, "h", 1, 9), "tasks_by_holder"],
  ["tasks that a process holds", (tx) => heldBy(tx, "h"), "tasks_by_holder"],
  ["tasks that are due for the purge", (tx) => endedBefore(tx, 1, 9), "tasks_to_purge"],
  ["tasks that an agent holds", (tx) => countHeldByAgent(tx, "a"), "tasks_held_by_agent"],
  ["events after a cursor", (tx) => readEvents(tx, "t", 5n, 9), "sequence>?"],
  ["tasks that depend on a block", (tx) => tasksUnderBlock(tx, "b", 9), "revocation_id=?"],
])("%s is found by an index, in its order", async (_name, query, index) => {
  const plans = await plansOf(CORE_MIGRATIONS, query);
  expect(plans).toHaveLength(1);
  expect(plans[0]).toMatch(/^(SEARCH|SCAN tasks USING (COVERING )?INDEX)/);
  expect(plans[0]).toContain(index);
});

test("which of several agents have waiting tasks is found by one look-up in an index for each agent", async () => {
  const plans = await plansOf(CORE_MIGRATIONS, (tx) => agentsWithWorkAmong(tx, ["a", "b", "c"], 1));
  expect(plans.filter((plan) => plan.includes("tasks"))).toEqual([
    expect.stringMatching(/^SEARCH tasks (EXISTS )?USING INDEX tasks_queue(_by_capability)? \(agent_id=\?/),
  ]);
});
