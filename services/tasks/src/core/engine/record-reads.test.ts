import { systemTimers } from "@depute/core";
import type { ReadTx, Store } from "@depute/store";
import { expect, test } from "vitest";
import { RecordReads } from "./record-reads.ts";

/** Returns readers of an empty store, and the task ids of each transaction. */
function scene(isShared: boolean) {
  const transactions: string[][] = [];
  const store = {
    sharing: isShared ? {} : undefined,
    read: async (fn: (tx: ReadTx) => Promise<unknown>) => {
      const taskIds: string[] = [];
      transactions.push(taskIds);
      const get = async (...[, , [taskId]]: [unknown, string, string[]]) => void taskIds.push(taskId ?? "");
      return fn({ get } as unknown as ReadTx);
    },
  };
  return { reads: new RecordReads(store as unknown as Store, systemTimers), transactions };
}

test("calls of one turn share a transaction, and a later call reads again", async () => {
  const { reads, transactions } = scene(true);
  await Promise.all(["a", "b", "a"].map((taskId) => reads.find(taskId)));
  await reads.find("a");
  expect(transactions).toEqual([["a", "b"], ["a"]]);
});

test("a transaction reads at most 64 records", async () => {
  const { reads, transactions } = scene(true);
  await Promise.all(Array.from({ length: 130 }, (_, i) => reads.find(String(i))));
  expect(transactions.map((taskIds) => taskIds.length)).toEqual([64, 64, 2]);
});

test("a store of one process needs no turn", async () => {
  const { reads, transactions } = scene(false);
  await Promise.all(["a", "b"].map((taskId) => reads.find(taskId)));
  expect(transactions).toEqual([["a"], ["b"]]);
});
