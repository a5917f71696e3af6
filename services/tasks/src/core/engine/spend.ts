import { create } from "@bufbuild/protobuf";
import {
  type SpendBudget,
  SpendBudgetSchema,
  type Task,
  type TaskUsage,
} from "@depute/contracts/depute/tasks/v1/task_pb";
import type { ReadTx, WriteTx } from "@depute/store";
import {
  boundsOf,
  budgetOf,
  changeLimit,
  endAttempt,
  endChild,
  left,
  noteAttempt,
  type Overdraft,
  openAccount,
  reserve,
} from "../rules/spend.ts";
import { readAccount, writeAccount } from "../store/spend-rows.ts";

/**
 * Opens the account of a new task, if anything bounds it; a part's share is set aside from its parent's.
 *
 * @returns what bounds the task; undefined for nothing
 * @throws DeputeError BUDGET_EXCEEDED
 */
export async function openSpend(
  tx: WriteTx,
  taskId: string,
  asked: SpendBudget | undefined,
  parentTaskId: string,
): Promise<SpendBudget | undefined> {
  const parent = parentTaskId === "" ? undefined : await readAccount(tx, parentTaskId);
  let limit = boundsOf(asked);
  if (parent !== undefined) {
    const share = reserve(parent, asked);
    await writeAccount(tx, parentTaskId, share.parent);
    limit = share.limit;
  }
  const budget = budgetOf(limit);
  if (budget !== undefined) await writeAccount(tx, taskId, openAccount(limit));
  return budget;
}

/** Notes what an attempt has used up so far; gives back by how much that is more than was left. */
export async function noteUsage(
  tx: WriteTx,
  { id, spend }: Task,
  usage: TaskUsage | undefined,
): Promise<Overdraft | undefined> {
  const found = spend === undefined || usage === undefined ? undefined : await readAccount(tx, id);
  if (found === undefined || usage === undefined) return undefined;
  const { account, over } = noteAttempt(found, usage);
  await writeAccount(tx, id, account);
  return over;
}

/** What may still be used up; undefined where nothing bounds it. */
export async function readSpendLeft(tx: ReadTx, { id, spend }: Task): Promise<SpendBudget | undefined> {
  const account = spend === undefined ? undefined : await readAccount(tx, id);
  return account && budgetOf(left(account));
}

/**
 * Sets what bounds a task from now on.
 *
 * @returns what bounds it now
 * @throws DeputeError BUDGET_EXCEEDED
 */
export async function changeSpend(
  tx: WriteTx,
  { id, parentTaskId }: Task,
  asked: SpendBudget,
): Promise<SpendBudget> {
  const parent = parentTaskId === "" ? undefined : await readAccount(tx, parentTaskId);
  const present = (await readAccount(tx, id)) ?? openAccount(boundsOf(undefined));
  const changed = changeLimit(present, asked, parent);
  await writeAccount(tx, id, changed.account);
  if (changed.parent !== undefined) await writeAccount(tx, parentTaskId, changed.parent);
  return budgetOf(changed.account.limit) ?? create(SpendBudgetSchema);
}

/** Counts the attempt that is over. */
export async function settleAttempt(tx: WriteTx, { id }: Task): Promise<void> {
  const account = await readAccount(tx, id);
  if (account !== undefined) await writeAccount(tx, id, endAttempt(account));
}

/** Gives back to the parent what a task that has ended did not use. */
export async function settleTask(tx: WriteTx, { id, parentTaskId }: Task): Promise<void> {
  const parent = parentTaskId === "" ? undefined : await readAccount(tx, parentTaskId);
  const account = await readAccount(tx, id);
  if (parent === undefined || account === undefined) return;
  await writeAccount(tx, parentTaskId, endChild(parent, account));
}
