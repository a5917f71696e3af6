import { DeputeError, ErrorReason, invalid, parseTime } from "@depute/core";
import type { TaskContract } from "./documents.ts";

/** Most levels of parts of parts. */
export const MAX_LINEAGE = 32;

export type DecompositionMode = "sequential" | "parallel";

/** One part of a plan. */
export interface Part {
  contract: TaskContract;
  /** Ids of parts that have to be done before. */
  dependsOn: readonly string[];
}

export interface Plan {
  parent: TaskContract;
  mode: DecompositionMode;
  parts: readonly Part[];
}

/**
 * What each part depends on, by its id, once the plan is found to lie within its parent (DelegateOS 14.3).
 *
 * Depute's choice: the text only names decomposition, so the rules are those of attenuation. Money, time, capabilities
 * and hops of the parts are those of the parent and no more, a part costs one hop as a delegation does, and a part that
 * waits for another has a deadline that is not before that one's.
 *
 * @throws DeputeError INVALID_REQUEST with the field at fault, BUDGET_EXCEEDED
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
      throw invalid(`${at}.depends_on`, "the parts of a sequential plan depend on the one before");
    }
    for (const id of before) {
      const other = byId.get(id);
      if (other === undefined) throw invalid(`${at}.depends_on`, "names no part of this plan");
      if (deadlineOf(other.contract) > deadlineOf(part.contract)) {
        throw invalid(`${at}.contract.constraints.deadline`, "lies before that of a part that it depends on");
      }
    }
    dependencies.set(part.contract.id, before);
  }
  assertNoCycle(dependencies);
  return dependencies;
}

/**
 * Whether parts fit into what is left of the parent's budget.
 *
 * @param given microcents of the parent's budget that earlier plans gave away
 * @throws DeputeError BUDGET_EXCEEDED
 */
export function assertBudget(parent: TaskContract, parts: readonly Part[], given: number): void {
  const allowed = parent.constraints.maxBudgetMicrocents - given;
  // Each is at most 2^53-1; as bigints their sum is exact.
  const needed = parts.reduce(
    (sum, { contract }) => sum + BigInt(contract.constraints.maxBudgetMicrocents),
    0n,
  );
  if (needed <= BigInt(allowed)) return;
  throw new DeputeError(
    ErrorReason.BUDGET_EXCEEDED,
    "the parts cost more than is left of the contract's budget",
    {
      metadata: { needed: String(needed), allowed: String(allowed), unit: "microcents" },
    },
  );
}

function validatePart(part: TaskContract, parent: TaskContract, field: string): void {
  const at = `${field}.constraints`;
  if (part.id === parent.id) throw invalid(`${field}.id`, "a contract is no part of itself");
  if (deadlineOf(part) > deadlineOf(parent)) throw invalid(`${at}.deadline`, "lies after the parent's");
  const hops = parent.constraints.maxChainDepth - 1;
  if (hops < 0) throw invalid("parent_id", "the contract's work may not be handed on");
  if (part.constraints.maxChainDepth > hops) {
    throw invalid(`${at}.max_chain_depth`, `at most ${hops}: a part is one hop from its parent`);
  }
  const allowed = new Set(parent.constraints.requiredCapabilities);
  const foreign = part.constraints.requiredCapabilities.findIndex((capability) => !allowed.has(capability));
  if (foreign >= 0) throw invalid(`${at}.required_capabilities[${foreign}]`, "is not among the parent's");
}

function sequence(parts: readonly Part[], i: number): readonly string[] {
  const before = parts[i - 1];
  return before === undefined ? [] : [before.contract.id];
}

function assertNoCycle(dependencies: ReadonlyMap<string, readonly string[]>): void {
  const waiting = new Map([...dependencies].map(([id, before]) => [id, new Set(before)]));
  for (let free = [...waiting]; waiting.size > 0; ) {
    free = [...waiting].filter(([, before]) => [...before].every((id) => !waiting.has(id)));
    if (free.length === 0) throw invalid("parts", "parts depend on one another in a circle");
    for (const [id] of free) waiting.delete(id);
  }
}

function deadlineOf({ constraints }: TaskContract): number {
  return parseTime(constraints.deadline) ?? Number.NaN;
}
