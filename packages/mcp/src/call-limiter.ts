import type { Clock } from "@depute/core";
import {
  type Allowance,
  type AllowanceRate,
  type CallLimits,
  deposit,
  HOUR_MS,
  MINUTE_MS,
  withdraw,
} from "./rules/call-limits.ts";
import { LIMIT_REACHED, Refusal } from "./rules/refusal.ts";

/**
 * Maximum number of counters. Each counter is for one principal and one tool or server. At the maximum, the limiter
 * drops the counter that was idle longest, but none with running calls. A dropped counter starts again with a full
 * allowance.
 */
const MAX_COUNTS = 20_000;

/** The counter of one principal's calls within one scope. */
interface Count {
  running: number;
  calls?: Allowance;
  microcents?: Allowance;
}

/** Limits, and the calls to which they apply: the calls of one tool or method, or all calls of the server. */
export interface LimitScope {
  /** The start of the limits' names in errors. `tool_tasks` is for the requests on tasks that a tool began. */
  readonly kind: "tool" | "tool_tasks" | "server";
  /** The name of the tool or method; empty for the server. */
  readonly name: string;
  readonly limits: CallLimits;
}

/** One call that counts against its principal's limits until `end` is called. */
export interface CountedCall {
  /**
   * Counts the maximum cost of the call. Called before the tokens service reserves this amount.
   *
   * @param microcents at least 1
   * @throws Refusal LIMIT_EXCEEDED
   */
  spend(microcents: number): void;
  /**
   * Returns an unused amount to the principal's allowance: the part of the counted cost, in microcents, that was not
   * charged.
   */
  refund(microcents: number): void;
  /** Ends the call. */
  end(): void;
}

/** Enforces the limits of each principal's calls in this process. */
export class CallLimiter {
  readonly #clock: Clock;
  readonly #counts = new Map<string, Count>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Counts a call that begins. If one scope refuses the call, the call counts in none of the scopes.
   *
   * @param principal the holder of the call's token; empty for a caller without a token. All callers without a token
   * share one count
   * @param argumentBytes returns the size of the call's arguments; called only if a scope limits the size
   * @throws Refusal LIMIT_EXCEEDED, with `retry_after_ms` if a wait helps
   */
  begin(scopes: readonly LimitScope[], principal: string, argumentBytes: () => number): CountedCall {
    const limited = scopes.filter(({ limits }) => Object.keys(limits).length > 0);
    const counted = limited.map((scope) => ({ scope, count: this.#countOf(scope, principal) }));
    const nowMs = this.#clock.now();
    const withdrawn = counted.map(({ scope, count }) => {
      const { limits } = scope;
      if (limits.argumentBytes !== undefined && argumentBytes() > limits.argumentBytes)
        throw limitReached(scope, "argument_bytes", limits.argumentBytes);
      if (limits.concurrentCalls !== undefined && count.running >= limits.concurrentCalls)
        throw limitReached(scope, "concurrent_calls", limits.concurrentCalls);
      return taken(scope, "calls_per_minute", callRate(limits), count.calls, 1, nowMs);
    });
    for (const [i, { count }] of counted.entries()) {
      count.running++;
      const allowance = withdrawn[i];
      if (allowance !== undefined) count.calls = allowance;
    }
    return this.#countedCall(counted);
  }

  #countedCall(counted: readonly { scope: LimitScope; count: Count }[]): CountedCall {
    const clock = this.#clock;
    let hasEnded = false;
    return {
      spend(microcents) {
        const nowMs = clock.now();
        const withdrawn = counted.map(({ scope, count }) => {
          const rate = costRate(scope.limits);
          return taken(scope, "microcents_per_hour", rate, count.microcents, microcents, nowMs);
        });
        for (const [i, { count }] of counted.entries()) {
          const allowance = withdrawn[i];
          if (allowance !== undefined) count.microcents = allowance;
        }
      },
      refund(microcents) {
        for (const { scope, count } of counted) {
          const rate = costRate(scope.limits);
          if (rate !== undefined) count.microcents = deposit(rate, count.microcents, microcents, clock.now());
        }
      },
      end() {
        if (hasEnded) return;
        hasEnded = true;
        for (const { count } of counted) count.running--;
      },
    };
  }

  #countOf({ name, kind }: LimitScope, principal: string): Count {
    const key = JSON.stringify([kind, name, principal]);
    const count = this.#counts.get(key) ?? { running: 0 };
    // A Map keeps the order of insertion. Deleting and inserting a count again makes it the most recently used.
    this.#counts.delete(key);
    this.#counts.set(key, count);
    if (this.#counts.size > MAX_COUNTS) this.#dropOldest(key);
    return count;
  }

  #dropOldest(kept: string): void {
    for (const [key, { running }] of this.#counts) {
      if (running > 0 || key === kept) continue;
      this.#counts.delete(key);
      return;
    }
  }
}

function callRate({ callsPerMinute }: CallLimits): AllowanceRate | undefined {
  return callsPerMinute === undefined ? undefined : { capacity: callsPerMinute, periodMs: MINUTE_MS };
}

function costRate({ microcentsPerHour }: CallLimits): AllowanceRate | undefined {
  return microcentsPerHour === undefined ? undefined : { capacity: microcentsPerHour, periodMs: HOUR_MS };
}

/**
 * Returns the allowance that remains after an amount is taken; undefined if there is no limit. Throws Refusal if the
 * amount exceeds the allowance.
 */
function taken(
  scope: LimitScope,
  limit: string,
  rate: AllowanceRate | undefined,
  allowance: Allowance | undefined,
  amount: number,
  nowMs: number,
): Allowance | undefined {
  if (rate === undefined) return undefined;
  const withdrawal = withdraw(rate, allowance, amount, nowMs);
  if (!withdrawal.ok) throw limitReached(scope, limit, rate.capacity, withdrawal.retryAfterMs);
  return withdrawal.allowance;
}

function limitReached(
  { kind, name }: LimitScope,
  limit: string,
  max: number,
  retryAfterMs?: number,
): Refusal {
  const subjects = { tool: "", tool_tasks: "tasks of ", server: "the server" };
  const subject = `${subjects[kind]}${name.slice(0, 64)}`;
  const advice = retryAfterMs === undefined ? "" : `; try again in ${retryAfterMs} ms`;
  return new Refusal(LIMIT_REACHED, "Limit exceeded", {
    reason: "LIMIT_EXCEEDED",
    detail: `${subject} allows this principal at most ${max} ${limit.replaceAll("_", " ")}${advice}`,
    metadata: {
      limit: `${kind}_${limit}`,
      max: String(max),
      ...(retryAfterMs === undefined ? {} : { retry_after_ms: String(retryAfterMs) }),
    },
  });
}
