import type { ReadTx, WriteTx } from "@depute/store";
import type { Account } from "../rules/spend.ts";

interface SpendRow {
  max_tokens: number | null;
  max_cost: number | null;
  reserved_tokens: number;
  reserved_cost: number;
  spent_tokens: number;
  spent_cost: number;
  attempt_tokens: number;
  attempt_cost: number;
}

/** The account of a task; undefined for one that nothing bounds. */
export async function readAccount(tx: ReadTx, taskId: string): Promise<Account | undefined> {
  const row = await tx.get<SpendRow>(
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

/** Stores an account as it is now. */
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
