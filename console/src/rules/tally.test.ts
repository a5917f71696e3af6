import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { TaskSchema, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { expect, test } from "vitest";
import { tallyOf } from "./tally.ts";

const NOW = 100 * 60_000;

function task(status: TaskStatus, agentId: string, createMs: number, endMs?: number, cost = 0n, reason = "") {
  return create(TaskSchema, {
    status,
    agentId,
    createTime: timestampFromMs(createMs),
    ...(endMs !== undefined && { endTime: timestampFromMs(endMs) }),
    ...(cost > 0n && { usage: { costMicrocents: cost } }),
    ...(reason !== "" && { failure: { reason } }),
  });
}

test("counts, rates, latency, spend and reasons are computed from the tasks", () => {
  const open = [
    task(TaskStatus.PENDING, "a", NOW),
    task(TaskStatus.PENDING, "a", NOW),
    task(TaskStatus.PENDING, "b", NOW),
    task(TaskStatus.RUNNING, "b", NOW),
  ];
  const recent = [
    task(TaskStatus.COMPLETED, "a", NOW - 60_000, NOW - 58_000, 100_000_000n),
    task(TaskStatus.COMPLETED, "b", NOW, NOW + 4_000, 50_000_000n),
    task(TaskStatus.FAILED, "b", NOW, NOW + 1_000, 0n, "WORKER_ERROR"),
  ];
  const tally = tallyOf(open, recent, { nowMs: NOW + 5_000, windowMs: 3 * 60_000 });
  expect(tally).toMatchObject({
    open: { [TaskStatus.PENDING]: 3, [TaskStatus.RUNNING]: 1 },
    minutes: [98 * 60, 99 * 60, 100 * 60],
    created: [0, 1, 2],
    completed: [0, 1, 1],
    failed: [0, 0, 1],
    latency: [null, 2, 4],
    spend: [0, 1, 1.5],
    endedPerMinute: 0.6,
    medianMs: 4_000,
    spent: 150_000_000,
    queue: [
      { name: "a", value: 2 },
      { name: "b", value: 1 },
    ],
    reasons: [{ name: "WORKER_ERROR", value: 1 }],
    spendByAgent: [
      { name: "a", value: 100_000_000 },
      { name: "b", value: 50_000_000 },
    ],
  });
});

test("no tasks give zeros and no latency", () => {
  const tally = tallyOf([], [], { nowMs: NOW, windowMs: 60_000 });
  expect([tally.medianMs, tally.endedPerMinute, tally.spend]).toEqual([undefined, 0, [0]]);
});
