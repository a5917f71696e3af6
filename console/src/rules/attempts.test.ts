import { create } from "@bufbuild/protobuf";
import { TaskEventSchema } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { expect, test } from "vitest";
import { attemptsOf } from "./attempts.ts";

test("an attempt ends with the event that takes the task from its worker", () => {
  const events = [
    { case: "accepted", value: { worker: "w1", attempt: 1 } },
    { case: "requeued", value: { cause: { reason: "LEASE_EXPIRED" } } },
    { case: "accepted", value: { worker: "w2", attempt: 2 } },
  ] as const;
  const shown = attemptsOf(events.map((payload) => create(TaskEventSchema, { payload })));
  expect(shown).toEqual([
    { number: 1, worker: "w1", outcome: "LEASE_EXPIRED", tone: "waiting" },
    { number: 2, worker: "w2", outcome: "Holds the lease", tone: "active" },
  ]);
});
