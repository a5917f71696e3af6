import type { Bus, OnError } from "./bus.ts";
import { InProcessBus } from "./in-process.ts";
import type { SharedMemory } from "./memory.ts";
import type { RedisMemoryOptions } from "./redis-memory.ts";

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
 * Creates a bus. The function does not wait for a connection: the bus connects when Redis or the database becomes
 * reachable.
 *
 * @throws TypeError for a `redisUrl` that is not a redis: or rediss: URL
 */
export async function createBus({ redisUrl, redisCa, postgres, ...options }: BusOptions): Promise<Bus> {
  // The imports are dynamic, so that a process loads only the driver that it needs.
  if (redisUrl === undefined) {
    if (postgres === undefined) return new InProcessBus(options);
    const { PostgresBus } = await import("./postgres.ts");
    return new PostgresBus({ ...options, ...postgres });
  }
  requireRedis(redisUrl);
  const { RedisBus } = await import("./redis.ts");
  return new RedisBus({ ...options, url: redisUrl, ...(redisCa !== undefined && { ca: redisCa }) });
}

/**
 * Opens the memory that processes share over Redis. The function does not wait for a connection: the memory connects
 * when Redis becomes reachable.
 *
 * @throws TypeError unless `url` is a redis: or rediss: URL
 */
export async function openSharedMemory(options: RedisMemoryOptions): Promise<SharedMemory> {
  requireRedis(options.url);
  const { RedisMemory } = await import("./redis-memory.ts");
  return new RedisMemory(options);
}

function requireRedis(url: string): void {
  const { protocol } = new URL(url);
  if (protocol === "redis:" || protocol === "rediss:") return;
  throw new TypeError(`the Redis address begins with ${protocol}//; write redis:// or rediss://`);
}
