import { integer, nullable, type ReadTx, row, type WriteTx } from "@depute/store";
import type { Account } from "../rules/spend.ts";

const SPEND_ROW = row({
  max_tokens: nullable(integer),
  max_cost: nullable(integer),
  reserved_tokens: integer,
  reserved_cost: integer,
  spent_tokens: integer,
  spent_cost: integer,
  attempt_tokens: integer,
  attempt_cost: integer,
});

/** Returns the account of a task; undefined for a task without a budget. */
export async function readAccount(tx: ReadTx, taskId: string): Promise<Account | undefined> {
  const row = await tx.get(
    SPEND_ROW,
    `SELECT max_tokens, max_cost, reserved_tokens, reserved_cost, spent_tokens, spent_cost, attempt_tokens,
       attempt_cost FROM task_spend WHERE task_id = ?`,
    [taskId],
  );
  return (
    row && {
      limit: {
        tokens: row.max_tokens ?? Number.POSITIVE_INFINITY,
        cost: row.max_cost ?? Number.POSITIVE_INFINITY,
      },
      reserved: { tokens: row.reserved_tokens, cost: row.reserved_cost },
      spent: { tokens: row.spent_tokens, cost: row.spent_cost },
      attempt: { tokens: row.attempt_tokens, cost: row.attempt_cost },
    }
  );
}

/** Writes an account. */
export async function writeAccount(tx: WriteTx, taskId: string, account: Account): Promise<void> {
  const { limit, reserved, spent, attempt } = account;
  const bound = (amount: number) => (amount === Number.POSITIVE_INFINITY ? null : amount);
  await tx.run(
    `INSERT INTO task_spend (task_id, max_tokens, max_cost, reserved_tokens, reserved_cost, spent_tokens, spent_cost,
       attempt_tokens, attempt_cost)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (task_id) DO UPDATE SET max_tokens = excluded.max_tokens, max_cost = excluded.max_cost,
       reserved_tokens = excluded.reserved_tokens, reserved_cost = excluded.reserved_cost,
       spent_tokens = excluded.spent_tokens, spent_cost = excluded.spent_cost,
       attempt_tokens = excluded.attempt_tokens, attempt_cost = excluded.attempt_cost`,
    [
      taskId,
      bound(limit.tokens),
      bound(limit.cost),
      reserved.tokens,
      reserved.cost,
      spent.tokens,
      spent.cost,
      attempt.tokens,
      attempt.cost,
    ],
  );
}
