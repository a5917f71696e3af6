import { DeputeError, ErrorReason, invalid, parseTime } from "@depute/core";
import type { TaskContract } from "./documents.ts";

/** Maximum number of levels of contracts: a contract, its sub-contracts, their sub-contracts and so on. */
export const MAX_LINEAGE = 32;

export type DecompositionMode = "sequential" | "parallel";

/** One sub-contract of a plan. */
export interface Part {
  contract: TaskContract;
  /** Ids of the sub-contracts that must be complete before this sub-contract begins. */
  dependsOn: readonly string[];
}

export interface Plan {
  parent: TaskContract;
  mode: DecompositionMode;
  parts: readonly Part[];
}

/**
 * Requires that a plan stays within its parent contract (DelegateOS 14.3). DelegateOS only mentions decomposition, so
 * Depute applies the rules of attenuation. No sub-contract may have a later deadline, more capabilities or more chain
 * depth than the parent. Each level of sub-contracts reduces the depth by one, as each delegation does. The deadline of
 * a sub-contract must not precede the deadlines of its dependencies.
 *
 * @returns the dependencies of each sub-contract by its id
 * @throws DeputeError INVALID_REQUEST, naming the faulty field
 */
export function validatePlan({ parent, mode, parts }: Plan): Map<string, readonly string[]> {
  const byId = new Map(parts.map((part) => [part.contract.id, part]));
  if (byId.size !== parts.length) throw invalid("parts", "two parts have the same id");
  const dependencies = new Map<string, readonly string[]>();
  for (const [i, part] of parts.entries()) {
    const at = `parts[${i}]`;
    validatePart(part.contract, parent, `${at}.contract`);
    const before = mode === "sequential" ? sequence(parts, i) : part.dependsOn;
    if (mode === "sequential" && part.dependsOn.length > 0) {
      throw invalid(
        `${at}.depends_on`,
        "must be empty: each part of a sequential plan depends on the one before",
      );
    }
    for (const id of before) {
      const other = byId.get(id);
      if (other === undefined) throw invalid(`${at}.depends_on`, "is not the id of a part of this plan");
      if (deadlineOf(other.contract) > deadlineOf(part.contract)) {
        throw invalid(
          `${at}.contract.constraints.deadline`,
          "must not be before the deadline of a part that it depends on",
        );
      }
    }
    dependencies.set(part.contract.id, before);
  }
  assertNoCycle(dependencies);
  return dependencies;
}

/**
 * Requires that the budgets of the sub-contracts fit into the parent's remaining budget.
 *
 * @param plannedBudget the microcents of the parent's budget that earlier plans have allocated
 * @throws DeputeError BUDGET_EXCEEDED
 */
export function assertBudget(parent: TaskContract, parts: readonly Part[], plannedBudget: number): void {
  const allowed = parent.constraints.maxBudgetMicrocents - plannedBudget;
  // A budget may be as large as 2^53-1, so this code sums bigints.
  const needed = parts.reduce(
    (sum, { contract }) => sum + BigInt(contract.constraints.maxBudgetMicrocents),
    0n,
  );
  if (needed <= BigInt(allowed)) return;
  throw new DeputeError(
    ErrorReason.BUDGET_EXCEEDED,
    "the budgets of the parts exceed the contract's remaining budget",
    {
      metadata: { needed: String(needed), allowed: String(allowed), unit: "microcents" },
    },
  );
}

function validatePart(part: TaskContract, parent: TaskContract, field: string): void {
  const at = `${field}.constraints`;
  if (part.id === parent.id) throw invalid(`${field}.id`, "a contract cannot be its own part");
  if (deadlineOf(part) > deadlineOf(parent))
    throw invalid(`${at}.deadline`, "must not be after the parent's deadline");
  const hops = parent.constraints.maxChainDepth - 1;
  if (hops < 0) throw invalid("parent_id", "the contract allows no further delegation");
  if (part.constraints.maxChainDepth > hops) {
    throw invalid(`${at}.max_chain_depth`, `must be at most ${hops}: a part is one hop below its parent`);
  }
  const allowed = new Set(parent.constraints.requiredCapabilities);
  const foreign = part.constraints.requiredCapabilities.findIndex((capability) => !allowed.has(capability));
  if (foreign >= 0)
    throw invalid(`${at}.required_capabilities[${foreign}]`, "must be a capability of the parent");
}

function sequence(parts: readonly Part[], i: number): readonly string[] {
  const before = parts[i - 1];
  return before === undefined ? [] : [before.contract.id];
}

function assertNoCycle(dependencies: ReadonlyMap<string, readonly string[]>): void {
  const waiting = new Map([...dependencies].map(([id, before]) => [id, new Set(before)]));
  for (let free = [...waiting]; waiting.size > 0; ) {
    free = [...waiting].filter(([, before]) => [...before].every((id) => !waiting.has(id)));
    if (free.length === 0) throw invalid("parts", "the dependencies of the parts form a cycle");
    for (const [id] of free) waiting.delete(id);
  }
}

function deadlineOf({ constraints }: TaskContract): number {
  return parseTime(constraints.deadline) ?? Number.NaN;
}
