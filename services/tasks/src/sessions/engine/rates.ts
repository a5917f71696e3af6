import { type Clock, DeputeError, ErrorReason } from "@depute/core";
import { SettingsError } from "@depute/service";

/**
 * Maximum number of agents in the rate limiter. The limiter first drops the agent whose last message is oldest.
 * A dropped agent starts again with a full allowance.
 */
const MAX_AGENTS = 10_000;
const MINUTE_MS = 60_000;
/** Number of trust levels, which begin at 0. (ASP concepts "Trust levels") */
const LEVELS = 5;

interface Bucket {
  /** Number of messages that the agent may send immediately. */
  remainingRate: number;
  atMs: number;
}

/**
 * Limits each agent's rate of messages by its trust level. An agent may send one minute's messages at once, and
 * then only at the average rate. (ASP specification "Security" requires limits by level. ASP publishes no
 * numbers, so the rates are a setting.) Each process counts separately, over all sessions of an agent.
 */
export class MessageRates {
  readonly #perMinute: readonly number[];
  readonly #clock: Clock;
  readonly #buckets = new Map<string, Bucket>();

  constructor(perMinute: readonly number[], clock: Clock) {
    this.#perMinute = perMinute;
    this.#clock = clock;
  }

  /**
   * Counts a message of an agent against the agent's rate.
   *
   * @throws DeputeError LIMIT_EXCEEDED, with `retry_after_ms`
   */
  take(agentId: string, level: number): void {
    const perMinute = this.#perMinute[level] ?? this.#perMinute[0] ?? 0;
    const nowMs = this.#clock.now();
    const before = this.#buckets.get(agentId);
    const earned = before === undefined ? 0 : ((nowMs - before.atMs) * perMinute) / MINUTE_MS;
    const remainingRate =
      before === undefined ? perMinute : Math.min(perMinute, before.remainingRate + Math.max(0, earned));
    this.#buckets.delete(agentId);
    this.#buckets.set(agentId, {
      remainingRate: remainingRate < 1 ? remainingRate : remainingRate - 1,
      atMs: nowMs,
    });
    const [oldest] = this.#buckets.keys();
    if (this.#buckets.size > MAX_AGENTS && oldest !== undefined) this.#buckets.delete(oldest);
    if (remainingRate >= 1) return;
    const waitMs = Math.ceil(((1 - remainingRate) * MINUTE_MS) / perMinute);
    throw new DeputeError(ErrorReason.LIMIT_EXCEEDED, `more than ${perMinute} messages a minute`, {
      metadata: {
        limit: "messages_per_minute",
        code: "at_capacity",
        agent: agentId,
        max: String(perMinute),
        retry_after_ms: String(waitMs),
      },
    });
  }
}

/**
 * Reads the rates from the setting.
 *
 * @throws SettingsError
 */
export function readRates(texts: readonly string[]): number[] {
  const rates = texts.map(Number);
  if (rates.length === LEVELS && rates.every((rate) => Number.isSafeInteger(rate) && rate >= 1)) return rates;
  throw new SettingsError(
    "DEPUTE_ASP_MESSAGE_RATES: write five whole numbers, for the levels 0 to 4, like 60,120,300,600,1200",
  );
}
