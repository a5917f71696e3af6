import { create } from "@bufbuild/protobuf";
import {
  type SpendBudget,
  SpendBudgetSchema,
  type Task,
  type TaskUsage,
} from "@depute/contracts/depute/tasks/v1/task_pb";
import type { ReadTx, WriteTx } from "@depute/store";
import {
  available,
  boundsOf,
  budgetOf,
  changeLimit,
  endAttempt,
  endChild,
  noteAttempt,
  type Overdraft,
  openAccount,
  reserve,
} from "../rules/spend.ts";
import { readAccount, writeAccount } from "../store/spend-rows.ts";

/**
 * Opens the account of a new task, if a budget bounds the task. Reserves a child's share from the account of its
 * parent.
 *
 * @returns the limit of the task; undefined for none
 * @throws DeputeError BUDGET_EXCEEDED
 */
export async function openSpend(
  tx: WriteTx,
  taskId: string,
  askedSpend: SpendBudget | undefined,
  parentTaskId: string,
): Promise<SpendBudget | undefined> {
  const parent = parentTaskId === "" ? undefined : await readAccount(tx, parentTaskId);
  let limit = boundsOf(askedSpend);
  if (parent !== undefined) {
    const share = reserve(parent, askedSpend);
    await writeAccount(tx, parentTaskId, share.parent);
    limit = share.limit;
  }
  const budget = budgetOf(limit);
  if (budget !== undefined) await writeAccount(tx, taskId, openAccount(limit));
  return budget;
}

/**
 * Records the use of the present attempt up to this call. Returns the first unit whose use exceeds the remaining
 * budget; undefined for none.
 */
export async function noteUsage(
  tx: WriteTx,
  { id, spend }: Task,
  usage: TaskUsage | undefined,
): Promise<Overdraft | undefined> {
  const storedAccount = spend === undefined || usage === undefined ? undefined : await readAccount(tx, id);
  if (storedAccount === undefined || usage === undefined) return undefined;
  const { account, over } = noteAttempt(storedAccount, usage);
  await writeAccount(tx, id, account);
  return over;
}

/** Returns the remaining budget of a task; undefined for a task without a budget. */
export async function readSpendLeft(tx: ReadTx, { id, spend }: Task): Promise<SpendBudget | undefined> {
  const account = spend === undefined ? undefined : await readAccount(tx, id);
  return account && budgetOf(available(account));
}

/**
 * Changes the budget of a task.
 *
 * @returns the new budget
 * @throws DeputeError BUDGET_EXCEEDED
 */
export async function changeSpend(
  tx: WriteTx,
  { id, parentTaskId }: Task,
  askedSpend: SpendBudget,
): Promise<SpendBudget> {
  const parent = parentTaskId === "" ? undefined : await readAccount(tx, parentTaskId);
  const presentAccount = (await readAccount(tx, id)) ?? openAccount(boundsOf(undefined));
  const changed = changeLimit(presentAccount, askedSpend, parent);
  await writeAccount(tx, id, changed.account);
  if (changed.parent !== undefined) await writeAccount(tx, parentTaskId, changed.parent);
  return budgetOf(changed.account.limit) ?? create(SpendBudgetSchema);
}

/** Adds the use of a finished attempt to the use of the task. */
export async function settleAttempt(tx: WriteTx, { id }: Task): Promise<void> {
  const account = await readAccount(tx, id);
  if (account !== undefined) await writeAccount(tx, id, endAttempt(account));
}

/** Returns the unused budget of an ended child task to its parent's account, and counts the child's use there. */
export async function settleTask(tx: WriteTx, { id, parentTaskId }: Task): Promise<void> {
  const parent = parentTaskId === "" ? undefined : await readAccount(tx, parentTaskId);
  const account = await readAccount(tx, id);
  if (parent === undefined || account === undefined) return;
  await writeAccount(tx, parentTaskId, endChild(parent, account));
}
