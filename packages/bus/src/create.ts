import type { Bus, OnError } from "./bus.ts";
import { InProcessBus } from "./in-process.ts";
import type { SharedMemory } from "./memory.ts";
import { PostgresBus } from "./postgres.ts";
import { RedisBus } from "./redis.ts";
import { RedisMemory, type RedisMemoryOptions } from "./redis-memory.ts";

export interface BusOptions {
  /** URL of the Redis that the processes share. */
  readonly redisUrl?: string | undefined;
  /** Root certificates in PEM that a rediss: connection trusts. Default: those of the system. */
  readonly redisCa?: string | undefined;
  /**
   * The Postgres database that the processes share. It carries the wake-ups if `redisUrl` is absent. If both are
   * absent, wake-ups reach only this process.
   */
  readonly postgres?: { readonly url: string; readonly namespace: string } | undefined;
  readonly onError: OnError;
  /** Receives the number of dropped wake-ups, for a metric. */
  readonly onDrop?: (count: number) => void;
}

/**
 * Creates a bus. The function returns at once, and the bus connects when Redis or the database becomes reachable.
 *
 * @throws TypeError for a `redisUrl` that is not a redis: or rediss: URL
 */
export function createBus({ redisUrl, redisCa, postgres, ...options }: BusOptions): Bus {
  if (redisUrl === undefined) {
    return postgres === undefined ? new InProcessBus(options) : new PostgresBus({ ...options, ...postgres });
  }
  requireRedis(redisUrl);
  return new RedisBus({ ...options, url: redisUrl, ...(redisCa !== undefined && { ca: redisCa }) });
}

/**
 * Opens the memory that processes share over Redis. The function returns at once, and the memory connects when Redis
 * becomes reachable.
 *
 * @throws TypeError unless `url` is a redis: or rediss: URL
 */
export function openSharedMemory(options: RedisMemoryOptions): SharedMemory {
  requireRedis(options.url);
  return new RedisMemory(options);
}

function requireRedis(url: string): void {
  const { protocol } = new URL(url);
  if (protocol === "redis:" || protocol === "rediss:") return;
  throw new TypeError(`the Redis address begins with ${protocol}//; write redis:// or rediss://`);
}
