import { integer, oneOf, type ReadTx, row, text, type WriteTx } from "@depute/store";
import { type DecompositionMode, MAX_LINEAGE } from "../rules/decomposition.ts";

const COUNT_BUDGET_ROW = row({ count: integer, budget: integer });
const PARENT_ID_ROW = row({ parentId: text });

export interface SubContractRow {
  contractId: string;
  parentId: string;
  planId: string;
  mode: DecompositionMode;
  /** JSON array: the ids of the sub-contracts that must be complete before this sub-contract begins. */
  dependsOn: string;
  budget: number;
  /** The sub-contract's position among all sub-contracts of its parent, starting at 1. */
  place: number;
}

const SUB_CONTRACT_ROW = row<SubContractRow>({
  contractId: text,
  parentId: text,
  planId: text,
  mode: oneOf("sequential", "parallel"),
  dependsOn: text,
  budget: integer,
  place: integer,
});

const COLUMNS = `contract_id AS "contractId", parent_id AS "parentId", plan_id AS "planId", mode,
  depends_on AS "dependsOn", budget, place`;

export async function insertSubContract(tx: WriteTx, row: SubContractRow): Promise<void> {
  await tx.run(
    `INSERT INTO sub_contracts (contract_id, parent_id, plan_id, mode, depends_on, budget, place)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
    [row.contractId, row.parentId, row.planId, row.mode, row.dependsOn, row.budget, row.place],
  );
}

export function getSubContract(tx: ReadTx, contractId: string): Promise<SubContractRow | undefined> {
  return tx.get(SUB_CONTRACT_ROW, `SELECT ${COLUMNS} FROM sub_contracts WHERE contract_id = ?`, [contractId]);
}

/** Returns the number of a contract's sub-contracts, and the sum of their budgets in microcents. */
export async function partsOf(tx: ReadTx, parentId: string): Promise<{ count: number; budget: number }> {
  const row = await tx.get(
    COUNT_BUDGET_ROW,
    `SELECT COUNT(*) AS "count", COALESCE(SUM(budget), 0) AS "budget" FROM sub_contracts WHERE parent_id = ?`,
    [parentId],
  );
  return row ?? { count: 0, budget: 0 };
}

/** Returns the sub-contracts of a contract in the order in which they were stored. */
export function listSubContracts(
  tx: ReadTx,
  parentId: string,
  size: number,
  afterPlace: number,
): Promise<SubContractRow[]> {
  return tx.all(
    SUB_CONTRACT_ROW,
    `SELECT ${COLUMNS} FROM sub_contracts WHERE parent_id = ? AND place > ? ORDER BY place LIMIT ?`,
    [parentId, afterPlace, size],
  );
}

/**
 * Returns the contract's ancestors, beginning with its parent. Each sub-contract has one parent, and the parent was
 * stored earlier, so the recursion ends.
 */
export async function lineageOf(tx: ReadTx, contractId: string): Promise<string[]> {
  const rows = await tx.all(
    PARENT_ID_ROW,
    `WITH RECURSIVE above (parent_id, level) AS (
       SELECT parent_id, 1 FROM sub_contracts WHERE contract_id = ?
       UNION ALL
       SELECT sub_contracts.parent_id, above.level + 1
         FROM sub_contracts JOIN above ON sub_contracts.contract_id = above.parent_id
         WHERE above.level < ${MAX_LINEAGE}
     )
     SELECT parent_id AS "parentId" FROM above ORDER BY level`,
    [contractId],
  );
  return rows.map(({ parentId }) => parentId);
}
