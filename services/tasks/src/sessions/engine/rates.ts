import { type Clock, DeputeError, ErrorReason } from "@depute/core";
import { SettingsError } from "@depute/service";
import type { Store } from "@depute/store";
import { type Bucket, MINUTE_MS, takeMessage } from "../rules/rate.ts";
import { readBucket, writeBucket } from "../store/rate-rows.ts";

/**
 * Maximum number of agents in memory. The limiter first drops the agent whose last message is oldest. A dropped agent
 * starts again with a full allowance.
 */
const MAX_AGENTS = 10_000;
/** Number of trust levels, which begin at 0. (ASP concepts "Trust levels") */
const LEVELS = 5;

/**
 * Limits each agent's rate of messages by its trust level, over all sessions of the agent. (ASP specification
 * "Security" requires limits by level. ASP publishes no numbers, so the rates are a setting.) The allowances are in
 * memory; with replicas they are in the store, so that the limit applies to all replicas together.
 */
export class MessageRates {
  readonly #perMinute: readonly number[];
  readonly #clock: Clock;
  readonly #sharedStore: Store | undefined;
  readonly #buckets = new Map<string, Bucket>();

  /** @param store the store of the sessions; if it is absent or not shared by replicas, the allowances are in memory */
  constructor(perMinute: readonly number[], clock: Clock, store?: Store) {
    this.#perMinute = perMinute;
    this.#clock = clock;
    this.#sharedStore = store?.sharing === undefined ? undefined : store;
  }

  /**
   * Counts a message of an agent against the agent's rate.
   *
   * @throws DeputeError LIMIT_EXCEEDED, with `retry_after_ms`
   */
  async take(agentId: string, level: number): Promise<void> {
    const perMinute = this.#perMinute[level] ?? this.#perMinute[0] ?? 0;
    const waitMs =
      this.#sharedStore === undefined
        ? this.#takeInMemory(agentId, perMinute)
        : await this.#takeInStore(this.#sharedStore, agentId, perMinute);
    if (waitMs === undefined) return;
    throw new DeputeError(
      ErrorReason.LIMIT_EXCEEDED,
      `the agent may send at most ${perMinute} messages a minute: wait for retry_after_ms`,
      {
        metadata: {
          limit: "messages_per_minute",
          code: "at_capacity",
          agent: agentId,
          max: String(perMinute),
          retry_after_ms: String(waitMs),
        },
      },
    );
  }

  #takeInMemory(agentId: string, perMinute: number): number | undefined {
    const { bucket, waitMs } = takeMessage(this.#buckets.get(agentId), perMinute, this.#clock.now());
    this.#buckets.delete(agentId);
    this.#buckets.set(agentId, bucket);
    const [oldest] = this.#buckets.keys();
    if (this.#buckets.size > MAX_AGENTS && oldest !== undefined) this.#buckets.delete(oldest);
    return waitMs;
  }

  async #takeInStore(store: Store, agentId: string, perMinute: number): Promise<number | undefined> {
    return store.write(
      async (tx) => {
        const nowMs = this.#clock.now();
        const { bucket, waitMs } = takeMessage(await readBucket(tx, agentId), perMinute, nowMs);
        await writeBucket(tx, agentId, bucket, nowMs - MINUTE_MS);
        return waitMs;
      },
      { isRepeatable: true },
    );
  }
}

/**
 * Parses the rates of the setting.
 *
 * @throws SettingsError
 */
export function readRates(texts: readonly string[]): number[] {
  const rates = texts.map(Number);
  if (rates.length === LEVELS && rates.every((rate) => Number.isSafeInteger(rate) && rate >= 1)) return rates;
  throw new SettingsError(
    "DEPUTE_ASP_MESSAGE_RATES must be five whole numbers, for the levels 0 to 4, like 60,120,300,600,1200",
  );
}
