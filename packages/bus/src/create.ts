import type { Bus, OnError } from "./bus.ts";
import { InProcessBus } from "./in-process.ts";
import { RedisBus } from "./redis.ts";

export interface BusOptions {
  /** Address of the Redis that the processes share; without it wake-ups stay in this process. */
  readonly redisUrl?: string | undefined;
  readonly onError: OnError;
  /** Told how many wake-ups were given up; for a metric. */
  readonly onDrop?: (count: number) => void;
}

/**
 * Returns at once; Redis may be away now and come later.
 *
 * @throws TypeError when `redisUrl` is no redis: or rediss: URL
 */
export function createBus({ redisUrl, ...options }: BusOptions): Bus {
  if (redisUrl === undefined) return new InProcessBus(options);
  const { protocol } = new URL(redisUrl);
  if (protocol !== "redis:" && protocol !== "rediss:") {
    throw new TypeError(`a Redis address begins with redis:// or rediss://, not with ${protocol}//`);
  }
  return new RedisBus({ ...options, url: redisUrl });
}
