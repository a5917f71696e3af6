import { create } from "@bufbuild/protobuf";
import {
  type SpendBudget,
  SpendBudgetSchema,
  type TaskUsage,
} from "@depute/contracts/depute/tasks/v1/task_pb";
import { DeputeError, ErrorReason } from "@depute/core";

/** The counted units: tokens of language models, and cost in microcents. */
export const UNITS = ["tokens", "cost"] as const;
export type Unit = (typeof UNITS)[number];

/** One amount for each unit. */
export type Amounts = Readonly<Record<Unit, number>>;

/** A bound for each unit; infinite for no bound. */
export type Bounds = Amounts;

/**
 * The budget of a task and its use. The sum of `spent`, `reserved` and `attempt` is always within `limit`. A parent's
 * `reserved` contains the limit of each open child, for the units that the parent bounds. So no tree exceeds the limit
 * of its root.
 */
export interface Account {
  readonly limit: Bounds;
  /** The amounts that are reserved for children that have not ended. */
  readonly reserved: Amounts;
  /** The amounts that finished attempts and ended children have used. */
  readonly spent: Amounts;
  /** The amounts that the present attempt has used, as reported by its worker. */
  readonly attempt: Amounts;
}

export const NOTHING: Amounts = { tokens: 0, cost: 0 };

/** Returns the account of a new task. */
export function openAccount(limit: Bounds): Account {
  return { limit, reserved: NOTHING, spent: NOTHING, attempt: NOTHING };
}

/** Returns the amounts that the task can still use, or reserve for children. */
export function available({ limit, reserved, spent, attempt }: Account): Bounds {
  return each((unit) => limit[unit] - reserved[unit] - spent[unit] - attempt[unit]);
}

/**
 * Reserves a child's share of the budget. If the child states no limit for a unit, its share is the parent's whole
 * remaining amount.
 *
 * @returns the parent's account after the reservation, and the child's limit
 * @throws DeputeError BUDGET_EXCEEDED when the parent's remaining amount is too small
 */
export function reserve(
  parent: Account,
  askedBudget: SpendBudget | undefined,
): { parent: Account; limit: Bounds } {
  const remaining = available(parent);
  const wantedBounds = boundsOf(askedBudget);
  const limit = each((unit) => {
    if (wantedBounds[unit] !== Number.POSITIVE_INFINITY) {
      if (wantedBounds[unit] > remaining[unit]) throw exceeded(unit, wantedBounds[unit], remaining[unit]);
      return wantedBounds[unit];
    }
    if (remaining[unit] <= 0) throw exceeded(unit, 1, remaining[unit]);
    return remaining[unit];
  });
  // A unit for which the parent has no limit needs no reservation.
  const reservation = each((unit) => (parent.limit[unit] === Number.POSITIVE_INFINITY ? 0 : limit[unit]));
  return { parent: { ...parent, reserved: add(parent.reserved, reservation) }, limit };
}

/**
 * Records the use of the present attempt up to this call.
 *
 * @returns the changed account, and in `over` the first unit whose use exceeds the budget (undefined for none). The
 * account then counts only the use within the budget.
 */
export function noteAttempt(
  account: Account,
  usage: TaskUsage,
): { account: Account; over: Overdraft | undefined } {
  const used: Amounts = { tokens: Number(usage.tokensUsed), cost: Number(usage.costMicrocents) };
  const allowed = available({ ...account, attempt: NOTHING });
  const unit = UNITS.find((one) => used[one] > allowed[one]);
  const attempt = each((one) => Math.min(used[one], allowed[one]));
  const over = unit && { unit, needed: used[unit], allowed: allowed[unit] };
  return { account: { ...account, attempt }, over };
}

/** A use that exceeds a budget: `needed` is the use, and `allowed` is the budget that remains for it. */
export interface Overdraft {
  readonly unit: Unit;
  readonly needed: number;
  readonly allowed: number;
}

/** Returns the account after the end of an attempt: the use of the attempt counts as spent. */
export function endAttempt(account: Account): Account {
  return { ...account, spent: add(account.spent, account.attempt), attempt: NOTHING };
}

/** Returns the parent's account after a child's end. The child's unused share is available to the parent again. */
export function endChild(parent: Account, child: Account): Account {
  const returned = each((unit) => (parent.limit[unit] === Number.POSITIVE_INFINITY ? 0 : child.limit[unit]));
  return {
    ...parent,
    reserved: each((unit) => parent.reserved[unit] - returned[unit]),
    spent: add(parent.spent, child.spent),
  };
}

/**
 * Changes a task's limit. For a child, the difference moves between the accounts of child and parent, for the units
 * that the parent bounds.
 *
 * @throws DeputeError BUDGET_EXCEEDED when the new limit is below the use and reservations, or above the parent's
 * remaining amount
 */
export function changeLimit(
  account: Account,
  askedBudget: SpendBudget,
  parent: Account | undefined,
): { account: Account; parent: Account | undefined } {
  const wantedBounds = boundsOf(askedBudget);
  const used = add(add(account.spent, account.reserved), account.attempt);
  const above = parent && available(parent);
  const limit = each((unit) => {
    // A request may omit a unit that the parent bounds. The child then keeps its present limit for that unit.
    const isBounded = parent !== undefined && parent.limit[unit] !== Number.POSITIVE_INFINITY;
    const next =
      wantedBounds[unit] === Number.POSITIVE_INFINITY && isBounded ? account.limit[unit] : wantedBounds[unit];
    if (next < used[unit]) throw exceeded(unit, used[unit], next);
    if (isBounded && above !== undefined && next - account.limit[unit] > above[unit]) {
      throw exceeded(unit, next, account.limit[unit] + above[unit]);
    }
    return next;
  });
  const reserved =
    parent &&
    each((unit) =>
      parent.limit[unit] === Number.POSITIVE_INFINITY
        ? parent.reserved[unit]
        : parent.reserved[unit] + limit[unit] - account.limit[unit],
    );
  return { account: { ...account, limit }, parent: parent && reserved && { ...parent, reserved } };
}

/** Converts a budget to bounds. */
export function boundsOf(budget: SpendBudget | undefined): Bounds {
  return {
    tokens: budget?.maxTokens === undefined ? Number.POSITIVE_INFINITY : Number(budget.maxTokens),
    cost:
      budget?.maxCostMicrocents === undefined ? Number.POSITIVE_INFINITY : Number(budget.maxCostMicrocents),
  };
}

/** Converts bounds to a budget; undefined if no unit is bounded. */
export function budgetOf({ tokens, cost }: Bounds): SpendBudget | undefined {
  if (tokens === Number.POSITIVE_INFINITY && cost === Number.POSITIVE_INFINITY) return undefined;
  return create(SpendBudgetSchema, {
    ...(tokens === Number.POSITIVE_INFINITY ? {} : { maxTokens: BigInt(tokens) }),
    ...(cost === Number.POSITIVE_INFINITY ? {} : { maxCostMicrocents: BigInt(cost) }),
  });
}

/** Returns the error for an amount that exceeds a budget. */
export function exceeded(unit: Unit, needed: number, allowed: number): DeputeError {
  const word = unit === "tokens" ? "tokens" : "microcents";
  return new DeputeError(
    ErrorReason.BUDGET_EXCEEDED,
    `${needed} ${word} are required, but only ${allowed} are left`,
    {
      metadata: { needed: String(needed), allowed: String(allowed), unit: word },
    },
  );
}

/** Returns the sum of two amounts, at most 2^53-1, the largest safe integer of JavaScript. */
function add(a: Amounts, b: Amounts): Amounts {
  return each((unit) => Math.min(a[unit] + b[unit], Number.MAX_SAFE_INTEGER));
}

function each(amount: (unit: Unit) => number): Amounts {
  return { tokens: amount("tokens"), cost: amount("cost") };
}
