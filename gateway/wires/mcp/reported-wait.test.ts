import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Task, TaskSchema, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { ManualClock } from "@depute/core";
import { expect, test } from "vitest";
import type { WireCall } from "../../edge/wire-call.ts";
import type { OwnClients } from "./methods.ts";
import { reportedWait } from "./reported-wait.ts";

const taskOf = (status: TaskStatus, lastSequence: bigint, more: object = {}) =>
  create(TaskSchema, { id: "t", status, lastSequence, ...more });
const QUEUED = taskOf(TaskStatus.PENDING, 1n);
const progress = (processed: number, total: number) => ({
  progress: { processed, total, message: `step ${processed}` },
});

/** Waits for a task that has these states. Each wait takes 1,000 milliseconds; an error ends the states. */
async function waitFor(states: readonly (Task | Error)[], waitMs = 20_000) {
  const clock = new ManualClock(0);
  const sent: unknown[] = [];
  const asked: unknown[] = [];
  const coming = [...states];
  const waitTask = async ({ afterSequence }: { afterSequence: bigint }) => {
    asked.push(afterSequence);
    clock.advance(1_000);
    const next = coming.shift();
    if (next instanceof Error) throw next;
    return { task: next };
  };
  const deps = {
    clock,
    tasks: { waitTask } as unknown as OwnClients["tasks"],
    timers: {
      after(_: number, run: () => void) {
        queueMicrotask(run);
        return () => {};
      },
    },
  };
  const call = { aside: {}, signal: new AbortController().signal } as WireCall;
  const task = await reportedWait(deps as never, QUEUED, waitMs, call, {
    areWanted: true,
    progress: (each) => sent.push(each),
    log: (level, { status, message }) => sent.push([level, status, message]),
  });
  return { task, sent, asked };
}

test("each state is sent once, and the end of the task ends the wait", async () => {
  const running = taskOf(TaskStatus.RUNNING, 3n, progress(1, 2));
  const ended = taskOf(TaskStatus.FAILED, 4n, { ...progress(1, 2), endTime: timestampFromMs(1) });
  const { task, sent, asked } = await waitFor([running, running, ended]);
  expect(task).toBe(ended);
  expect(asked).toEqual([1n, 3n, 3n]);
  expect(sent.filter(Array.isArray)).toEqual([
    ["info", "pending", "pending"],
    ["info", "running", "running: step 1"],
    ["warning", "failed", "failed: step 1"],
  ]);
  expect(sent).toContainEqual({ progress: 1, total: 2, message: "step 1" });
});

test("an unknown total is not sent", async () => {
  const { sent } = await waitFor([taskOf(TaskStatus.RUNNING, 2n, progress(5, 0))], 1_000);
  expect(sent).toContainEqual({ progress: 5, message: "step 5" });
});

test("the wait ends after its time, with the task as it is", async () => {
  const running = taskOf(TaskStatus.RUNNING, 2n);
  expect(await waitFor(Array(10).fill(running), 3_000)).toMatchObject({
    task: running,
    asked: [1n, 2n, 2n],
  });
});

test("a failure of the tasks service ends the wait with the newest known state", async () => {
  const running = taskOf(TaskStatus.RUNNING, 2n);
  expect((await waitFor([running, new Error("the service is gone")])).task).toBe(running);
});
