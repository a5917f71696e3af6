import { Redis, type RedisOptions } from "ioredis";
import type { Bus, Listener, OnError } from "./bus.ts";
import { Listeners, Pending } from "./in-process.ts";

const CHANNEL_PREFIX = "depute:";
/**
 * Maximum number of distinct keys of one topic that wait for Redis. With more keys, the topic's wake-ups merge into
 * ALL_KEYS.
 */
const MAX_KEYS = 10_000;
const COMMAND_LIMIT_MS = 5_000;
const FIRST_RETRY_MS = 50;
const LONGEST_RETRY_MS = 5_000;

export interface RedisBusOptions {
  /**
   * The URL of Redis: redis://[user:password@]host:port or rediss://... The database number has no effect on pub/sub.
   */
  readonly url: string;
  /** Root certificates in PEM that a rediss: connection trusts. Default: those of the system. */
  readonly ca?: string;
  readonly onError: OnError;
  /**
   * Receives the number of dropped wake-ups: wake-ups that Redis refused, and wake-ups that still waited when the bus
   * was closed.
   */
  readonly onDrop?: (count: number) => void;
}

/**
 * The bus between processes, over Redis pub/sub. Topic t is the channel `depute:t`, and the payload is the key. While
 * Redis is unreachable, wake-ups wait, and too many keys merge into ALL_KEYS. Whenever Redis confirms a subscription,
 * its listeners get ALL_KEYS, because they may have missed wake-ups.
 */
export class RedisBus implements Bus {
  readonly #listeners: Listeners;
  readonly #pending = new Pending(MAX_KEYS);
  readonly #publisher: Redis;
  readonly #subscriber: Redis;
  readonly #onError: OnError;
  readonly #onDrop: (count: number) => void;
  #scheduled: NodeJS.Immediate | undefined;
  #sending: Promise<void> | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: RedisBusOptions) {
    this.#listeners = new Listeners(options.onError);
    this.#onError = options.onError;
    this.#onDrop = options.onDrop ?? (() => {});
    this.#publisher = connect(options, "publisher");
    this.#publisher.on("ready", () => this.#schedule());
    this.#subscriber = connect(options, "subscriber");
    this.#subscriber.on("ready", () => this.#listen(this.#listeners.topics));
    this.#subscriber.on("message", (channel: string, key: string) => {
      this.#listeners.deliver(channel.slice(CHANNEL_PREFIX.length), key);
    });
  }

  publish(topic: string, key: string): void {
    if (this.#closed !== undefined) return;
    this.#pending.add(topic, key);
    this.#schedule();
  }

  subscribe(topic: string, listener: Listener): () => void {
    if (this.#closed !== undefined) return () => {};
    const isFirst = !this.#listeners.has(topic);
    const remove = this.#listeners.add(topic, listener);
    if (isFirst && this.#subscriber.status === "ready") this.#listen([topic]);
    return () => {
      const before = this.#listeners.has(topic);
      remove();
      if (before && !this.#listeners.has(topic) && this.#subscriber.status === "ready") {
        this.#subscriber.unsubscribe(CHANNEL_PREFIX + topic).catch(() => {
          // A failure means that the connection broke. The next connection subscribes only to topics that still have
          // listeners.
        });
      }
    };
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  #listen(topics: string[]): void {
    if (topics.length === 0) return;
    this.#subscriber.subscribe(...topics.map((topic) => CHANNEL_PREFIX + topic)).then(
      () => this.#listeners.deliverEverything(topics),
      (error: unknown) => {
        // If the connection is not ready, the next connection makes this subscription.
        if (this.#subscriber.status === "ready")
          this.#onError(error, `Redis refused to subscribe to ${topics}`);
      },
    );
  }

  /**
   * Sends at the end of this turn of the event loop. Equal wake-ups then merge, and different wake-ups share one write.
   */
  #schedule(): void {
    this.#scheduled ??= setImmediate(() => {
      this.#scheduled = undefined;
      this.#flush();
    });
  }

  /**
   * Sends one batch at a time. While Redis is slow, waiting wake-ups merge into the next batch. So the batches become
   * larger, not more numerous.
   */
  #flush(): void {
    if (this.#sending !== undefined || this.#pending.isEmpty || this.#publisher.status !== "ready") return;
    this.#sending = this.#send().finally(() => {
      this.#sending = undefined;
      if (!this.#pending.isEmpty && this.#publisher.status === "ready") this.#schedule();
    });
  }

  async #send(): Promise<void> {
    const batch = this.#pending.take();
    const pipeline = this.#publisher.pipeline();
    for (const { topic, key } of batch) pipeline.publish(CHANNEL_PREFIX + topic, key);
    const results = (await pipeline.exec().catch(() => null)) ?? [];
    const failed = batch.flatMap((wakeUp, i) => {
      const [error] = results[i] ?? [new Error("no answer")];
      return error ? [{ wakeUp, error }] : [];
    });
    const refused = failed.filter(({ error }) => error.name === "ReplyError");
    if (refused[0] !== undefined) {
      this.#onDrop(refused.length);
      this.#onError(refused[0].error, "Redis refused to publish");
    }
    // Without an answer from Redis, these wake-ups may or may not have been published. They are sent again, because a
    // duplicate is harmless.
    for (const { wakeUp, error } of failed)
      if (error.name !== "ReplyError") this.#pending.add(wakeUp.topic, wakeUp.key);
  }

  async #close(): Promise<void> {
    this.#listeners.clear();
    clearImmediate(this.#scheduled);
    await this.#sending;
    clearImmediate(this.#scheduled);
    if (this.#publisher.status === "ready") await this.#send();
    const unsentCount = this.#pending.take().length;
    if (unsentCount > 0) this.#onDrop(unsentCount);
    await Promise.all([disconnect(this.#publisher), disconnect(this.#subscriber)]);
  }
}

/** The options of a connection. */
export interface ConnectionOptions {
  readonly url: string;
  readonly ca?: string | undefined;
  readonly onError: OnError;
  /** Maximum milliseconds to wait for the answer to a command; COMMAND_LIMIT_MS when absent. */
  readonly commandLimitMs?: number;
}

/** Opens a connection, which reconnects after each loss. While it is not ready, it refuses commands. */
export function connect(options: ConnectionOptions, role: string): Redis {
  const settings = {
    connectionName: `depute-bus-${role}`,
    retryStrategy: (attempt: number) => {
      const delay = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(attempt, 10));
      return delay / 2 + (Math.random() * delay) / 2;
    },
    // The client refuses commands while it is not ready. RedisBus and RedisMemory decide what waits, and bound the
    // waiting.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    commandTimeout: options.commandLimitMs ?? COMMAND_LIMIT_MS,
    // The connection is closed only after the last send has ended, so a short wait is enough.
    disconnectTimeout: 200,
    ...(options.ca !== undefined && options.url.startsWith("rediss:") && { tls: { ca: options.ca } }),
  } satisfies RedisOptions;
  const redis = new Redis(options.url, settings);
  let away = false;
  redis.on("ready", () => {
    away = false;
  });
  redis.on("error", (error: unknown) => {
    // Only the first failed attempt is reported, because later attempts fail for the same reason.
    if (!away) options.onError(error, `the bus lost its ${role} connection to Redis`);
    away = true;
  });
  return redis;
}

export async function disconnect(redis: Redis): Promise<void> {
  const connected = redis.status === "ready" || redis.status === "connect";
  const ended = connected ? new Promise((resolve) => redis.once("end", resolve)) : undefined;
  redis.disconnect();
  await ended;
}
