import { create } from "@bufbuild/protobuf";
import {
  type SpendBudget,
  SpendBudgetSchema,
  type TaskUsage,
} from "@depute/contracts/depute/tasks/v1/task_pb";
import { DeputeError, ErrorReason } from "@depute/core";

/** What is counted, each in its own unit: tokens, and microcents. */
export const UNITS = ["tokens", "cost"] as const;
export type Unit = (typeof UNITS)[number];

/** An amount of each. */
export type Amounts = Readonly<Record<Unit, number>>;

/** A bound of each; infinite where there is none. */
export type Bounds = Amounts;

/**
 * What a task may use up, and where that went. At every moment `spent + reserved + attempt <= limit`, and a child's limit
 * is within its parent's `reserved`: so no tree uses more than its root's limit.
 */
export interface Account {
  readonly limit: Bounds;
  /** Set aside for children that have not ended. */
  readonly reserved: Amounts;
  /** Used up by attempts that are over, and by children that have ended. */
  readonly spent: Amounts;
  /** Used up by the present attempt, as far as its worker said. */
  readonly attempt: Amounts;
}

export const NOTHING: Amounts = { tokens: 0, cost: 0 };

/** The account of a new task. */
export function openAccount(limit: Bounds): Account {
  return { limit, reserved: NOTHING, spent: NOTHING, attempt: NOTHING };
}

/** What can still be used up, or given to children. */
export function left({ limit, reserved, spent, attempt }: Account): Bounds {
  return each((unit) => limit[unit] - reserved[unit] - spent[unit] - attempt[unit]);
}

/**
 * Sets a child's share aside. What the child's draft leaves open it gets whole, as far as it is left.
 *
 * @returns the parent's account after it, and the child's limit
 * @throws DeputeError BUDGET_EXCEEDED when the parent has not so much left, or nothing
 */
export function reserve(parent: Account, asked: SpendBudget | undefined): { parent: Account; limit: Bounds } {
  const rest = left(parent);
  const wanted = boundsOf(asked);
  const limit = each((unit) => {
    if (wanted[unit] !== Number.POSITIVE_INFINITY) {
      if (wanted[unit] > rest[unit]) throw exceeded(unit, wanted[unit], rest[unit]);
      return wanted[unit];
    }
    if (rest[unit] <= 0) throw exceeded(unit, 1, rest[unit]);
    return rest[unit];
  });
  // What has no bound above it is set aside by nobody.
  const taken = each((unit) => (parent.limit[unit] === Number.POSITIVE_INFINITY ? 0 : limit[unit]));
  return { parent: { ...parent, reserved: add(parent.reserved, taken) }, limit };
}

/**
 * Notes what the present attempt has used up so far.
 *
 * @returns the account, and the first unit of which more was used than was left; the account then holds no more than that
 */
export function noteAttempt(
  account: Account,
  usage: TaskUsage,
): { account: Account; over: Overdraft | undefined } {
  const used: Amounts = { tokens: usage.tokensUsed, cost: Number(usage.costMicrocents) };
  const allowed = left({ ...account, attempt: NOTHING });
  const unit = UNITS.find((one) => used[one] > allowed[one]);
  const attempt = each((one) => Math.min(used[one], allowed[one]));
  const over = unit && { unit, needed: used[unit], allowed: allowed[unit] };
  return { account: { ...account, attempt }, over };
}

/** More than there is. */
export interface Overdraft {
  readonly unit: Unit;
  readonly needed: number;
  readonly allowed: number;
}

/** The account when an attempt is over. */
export function endAttempt(account: Account): Account {
  return { ...account, spent: add(account.spent, account.attempt), attempt: NOTHING };
}

/** The parent's account when a child has ended: what it did not use comes back. */
export function endChild(parent: Account, child: Account): Account {
  const returned = each((unit) => (parent.limit[unit] === Number.POSITIVE_INFINITY ? 0 : child.limit[unit]));
  return {
    ...parent,
    reserved: each((unit) => parent.reserved[unit] - returned[unit]),
    spent: add(parent.spent, child.spent),
  };
}

/**
 * Sets another limit, and moves the difference from or to the parent.
 *
 * @throws DeputeError BUDGET_EXCEEDED when it is less than what is used up or set aside, or more than the parent has left
 */
export function changeLimit(
  account: Account,
  asked: SpendBudget,
  parent: Account | undefined,
): { account: Account; parent: Account | undefined } {
  const wanted = boundsOf(asked);
  const used = add(add(account.spent, account.reserved), account.attempt);
  const above = parent && left(parent);
  const limit = each((unit) => {
    // What the parent bounds cannot be set free.
    const isBounded = parent !== undefined && parent.limit[unit] !== Number.POSITIVE_INFINITY;
    const next = wanted[unit] === Number.POSITIVE_INFINITY && isBounded ? account.limit[unit] : wanted[unit];
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

/** A budget as bounds. */
export function boundsOf(budget: SpendBudget | undefined): Bounds {
  return {
    tokens: budget?.maxTokens === undefined ? Number.POSITIVE_INFINITY : Number(budget.maxTokens),
    cost:
      budget?.maxCostMicrocents === undefined ? Number.POSITIVE_INFINITY : Number(budget.maxCostMicrocents),
  };
}

/** Bounds as a budget; undefined where nothing is bounded. */
export function budgetOf({ tokens, cost }: Bounds): SpendBudget | undefined {
  if (tokens === Number.POSITIVE_INFINITY && cost === Number.POSITIVE_INFINITY) return undefined;
  return create(SpendBudgetSchema, {
    ...(tokens === Number.POSITIVE_INFINITY ? {} : { maxTokens: BigInt(tokens) }),
    ...(cost === Number.POSITIVE_INFINITY ? {} : { maxCostMicrocents: BigInt(cost) }),
  });
}

/** The refusal of more than there is. */
export function exceeded(unit: Unit, needed: number, allowed: number): DeputeError {
  const word = unit === "tokens" ? "tokens" : "microcents";
  return new DeputeError(
    ErrorReason.BUDGET_EXCEEDED,
    `${needed} ${word} are needed and ${allowed} are left`,
    {
      metadata: { needed: String(needed), allowed: String(allowed), unit: word },
    },
  );
}

function add(a: Amounts, b: Amounts): Amounts {
  return each((unit) => a[unit] + b[unit]);
}

function each(amount: (unit: Unit) => number): Amounts {
  return { tokens: amount("tokens"), cost: amount("cost") };
}
