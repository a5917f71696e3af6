import { type Clock, DeputeError, ErrorReason } from "@depute/core";
import { SettingsError } from "@depute/service";

/** Agents whose rates are remembered; who was silent longest is forgotten first, and begins anew. */
const MAX_AGENTS = 10_000;
const MINUTE_MS = 60_000;
/** Levels of trust, from 0. (ASP concepts "Trust levels") */
const LEVELS = 5;

interface Bucket {
  /** Messages that may be sent at once. */
  left: number;
  atMs: number;
}

/**
 * How many messages agents may send, by their level of trust when they came: as many as in a minute at once, and then as
 * fast as those come again. (ASP specification "Security" has rate limits by level; the numbers are a setting, because none
 * are published.) Counted by each process for itself, over all sessions of an agent.
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
   * Counts a message.
   *
   * @throws DeputeError LIMIT_EXCEEDED, with `retry_after_ms`
   */
  take(agentId: string, level: number): void {
    const perMinute = this.#perMinute[level] ?? this.#perMinute[0] ?? 0;
    const nowMs = this.#clock.now();
    const before = this.#buckets.get(agentId);
    const earned = before === undefined ? 0 : ((nowMs - before.atMs) * perMinute) / MINUTE_MS;
    const left = before === undefined ? perMinute : Math.min(perMinute, before.left + Math.max(0, earned));
    this.#buckets.delete(agentId);
    this.#buckets.set(agentId, { left: left < 1 ? left : left - 1, atMs: nowMs });
    const [oldest] = this.#buckets.keys();
    if (this.#buckets.size > MAX_AGENTS && oldest !== undefined) this.#buckets.delete(oldest);
    if (left >= 1) return;
    const waitMs = Math.ceil(((1 - left) * MINUTE_MS) / perMinute);
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
 * The setting's numbers.
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
