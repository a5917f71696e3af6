import { createHash } from "node:crypto";
import type { Clock, Timers } from "@depute/core";
import type { Redis } from "ioredis";
import type { OnError } from "./bus.ts";
import {
  LIMIT_NAMES,
  type LimitName,
  MemoryAwayError,
  type MemoryEntry,
  type MemoryLimits,
  type SharedMemory,
} from "./memory.ts";
import { connect, disconnect } from "./redis.ts";
import { ADD, GET, LIST, REMOVE } from "./redis-memory-scripts.ts";

/** Milliseconds from the start of an outage until which calls wait for the end of the outage. */
const SHORT_OUTAGE_MS = 1_000;
/** Milliseconds without an answer after which the process treats Redis as unreachable. */
const ANSWER_MS = 2_000;

export interface RedisMemoryOptions {
  /** The URL of Redis: redis://[user:password@]host:port[/database] or rediss://... */
  readonly url: string;
  /** Root certificates in PEM that a rediss: connection trusts. Default: those of the system. */
  readonly ca?: string | undefined;
  /** Separates the memories that share one Redis. All keys begin with `depute:{NAMESPACE}:`. */
  readonly namespace: string;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly onError: OnError;
}

/**
 * Memory over Redis. A value is a string key with a time to live. Two hashes and a sorted set list and count the
 * values. Scripts change all these keys together, so the limits hold over all processes. If Redis has lost some of
 * these keys, such as by eviction, the next `add` removes the remaining ones: values may be lost, but sums must not be
 * wrong. All keys share a hash tag, so a Redis cluster keeps them on one node.
 */
export class RedisMemory implements SharedMemory {
  readonly #redis: Redis;
  readonly #options: RedisMemoryOptions;
  readonly #base: string;
  /** Functions that continue the calls waiting for the connection. */
  readonly #waiting = new Set<() => void>();
  #awaySinceMs: number | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: RedisMemoryOptions) {
    this.#options = options;
    this.#base = `depute:{${options.namespace}}:`;
    this.#awaySinceMs = options.clock.monotonic();
    this.#redis = connect({ ...options, commandLimitMs: ANSWER_MS }, "memory");
    this.#redis.on("ready", () => {
      this.#awaySinceMs = undefined;
      for (const resume of this.#waiting) resume();
    });
    this.#redis.on("close", () => {
      this.#awaySinceMs ??= options.clock.monotonic();
    });
  }

  get isAway(): boolean {
    return this.#redis.status !== "ready";
  }

  async add(
    owner: string,
    entries: readonly MemoryEntry[],
    limits: MemoryLimits,
  ): Promise<LimitName | undefined> {
    const nowMs = this.#options.clock.now();
    const args = entries.flatMap(({ id, value, bytes, expireMs }) => [
      id,
      value,
      bytes,
      Math.max(1, expireMs - nowMs),
    ]);
    const maxima = LIMIT_NAMES.map((name) => limits[name]);
    const full = await this.#run(ADD, [nowMs, digestOf(owner), ...maxima, ...args]);
    return LIMIT_NAMES[Number(full) - 1];
  }

  async get(ids: readonly string[]): Promise<(string | undefined)[]> {
    if (ids.length === 0) return [];
    const values = (await this.#run(GET, ids)) as (string | null)[];
    return values.map((value) => value ?? undefined);
  }

  async remove(ids: readonly string[]): Promise<void> {
    if (ids.length > 0) await this.#run(REMOVE, ids);
  }

  async list(cursor: string) {
    const [next, fields] = (await this.#run(LIST, [cursor])) as [string, string[]];
    const entries = fields.flatMap((id, i) =>
      i % 2 === 0 ? [{ id, addMs: Number(fields[i + 1]?.split(" ")[1]) }] : [],
    );
    return { next, entries };
  }

  close(): Promise<void> {
    this.#closed ??= disconnect(this.#redis);
    return this.#closed;
  }

  /** Runs a script. Every script is idempotent, so a call whose answer was lost may be repeated. */
  async #run(script: string, args: readonly (string | number)[]): Promise<unknown> {
    await this.#ready();
    try {
      return await this.#redis.eval(script, 1, this.#base, ...args);
    } catch (error) {
      if ((error as Error).name === "ReplyError") {
        this.#options.onError(error, "Redis refused a command of the shared memory");
      } else if (this.#redis.status === "ready") {
        // Redis does not answer. `disconnect(true)` opens another connection, which becomes ready when Redis answers
        // again.
        this.#redis.disconnect(true);
      }
      throw new MemoryAwayError("Redis did not run a command of the shared memory; call again", {
        cause: error,
      });
    }
  }

  /** Waits until the connection is ready: at the start of the process, and during a short outage. */
  async #ready(): Promise<void> {
    const { clock, timers } = this.#options;
    if (this.#closed !== undefined) throw new MemoryAwayError("the shared memory is closed");
    if (!this.isAway) return;
    const restMs = (this.#awaySinceMs ?? clock.monotonic()) + SHORT_OUTAGE_MS - clock.monotonic();
    if (restMs > 0) {
      await new Promise<void>((resolve) => {
        const resume = () => {
          cancel();
          this.#waiting.delete(resume);
          resolve();
        };
        const cancel = timers.after(restMs, resume);
        this.#waiting.add(resume);
      });
    }
    if (this.isAway)
      throw new MemoryAwayError("Redis, which holds the shared memory, cannot be reached; call again later");
  }
}

function digestOf(owner: string): string {
  return createHash("sha256").update(owner).digest("base64url");
}
