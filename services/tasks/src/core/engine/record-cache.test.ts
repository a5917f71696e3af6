import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { WriteTx } from "@depute/store";
import { expect, test } from "vitest";
import { pending } from "../../testing/tasks.ts";
import { RecordCache } from "./record-cache.ts";

/** Returns a fake transaction that supports only the callbacks at its end. */
function transaction() {
  const hooks: { done: () => void; undone: () => void }[] = [];
  const tx = { afterRun: (runHook: () => void, undone: () => void) => hooks.push({ done: runHook, undone }) };
  return {
    tx: tx as unknown as WriteTx,
    succeed() {
      for (const { done } of hooks) done();
    },
    fail() {
      for (const { undone } of hooks) undone();
    },
  };
}

const first = pending();
const second = { ...first, epoch: 1 };
const ended = { ...first, task: { ...first.task, status: TaskStatus.COMPLETED } };

test.each([
  ["the last record", [first, second], second],
  ["no ended task", [first, ended], undefined],
  ["the same record, written twice", [first, second, second], second],
])("after several writes in one transaction the cache holds %s", (_name, records, expected) => {
  const cache = new RecordCache(10);
  const { tx, succeed } = transaction();
  for (const record of records) cache.store(tx, record);
  expect(cache.get(first.task.id)).toBeUndefined();
  succeed();
  expect(cache.get(first.task.id)).toBe(expected);
});

test("the cache holds no record of a failed transaction", () => {
  const cache = new RecordCache(10);
  const { tx, fail } = transaction();
  cache.store(tx, first);
  fail();
  expect(cache.get(first.task.id)).toBeUndefined();
});
