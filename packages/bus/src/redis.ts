import { Redis, type RedisOptions } from "ioredis";
import type { Bus, Listener, OnError } from "./bus.ts";
import { Listeners } from "./listeners.ts";
import { Pending } from "./pending.ts";

const CHANNEL_PREFIX = "depute:";
/** Keys of one topic that wait for Redis and are told apart. */
const MAX_KEYS = 10_000;
const COMMAND_LIMIT_MS = 5_000;
const FIRST_RETRY_MS = 50;
const LONGEST_RETRY_MS = 5_000;

export interface RedisBusOptions {
  /** redis://[user:password@]host:port or rediss://...; the database number does not matter to pub/sub. */
  readonly url: string;
  readonly onError: OnError;
  /** Told how many wake-ups were given up: those that Redis refused, and those that waited when the bus was closed. */
  readonly onDrop?: (count: number) => void;
}

/**
 * The bus between processes, over Redis pub/sub: topic t is channel `depute:t`, the payload is the key.
 *
 * Redis may come and go. While it is away wake-ups wait, merged and bounded. Whenever a subscription takes effect, for the first
 * time or again, its listeners are told to look at everything, as they may have missed wake-ups before.
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
          // The connection broke; the next one subscribes only to what is still listened to.
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
        // When the connection broke, the next one subscribes again.
        if (this.#subscriber.status === "ready")
          this.#onError(error, `Redis refused to subscribe to ${topics}`);
      },
    );
  }

  /** At the end of this turn of the event loop, so that equal wake-ups merge and the rest share one write. */
  #schedule(): void {
    this.#scheduled ??= setImmediate(() => {
      this.#scheduled = undefined;
      this.#flush();
    });
  }

  /** One batch is under way at a time: a slow Redis makes larger batches, not a longer queue. */
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
    // Not answered: perhaps published, perhaps not. Twice does no harm.
    for (const { wakeUp, error } of failed)
      if (error.name !== "ReplyError") this.#pending.add(wakeUp.topic, wakeUp.key);
  }

  async #close(): Promise<void> {
    this.#listeners.clear();
    clearImmediate(this.#scheduled);
    await this.#sending;
    clearImmediate(this.#scheduled);
    if (this.#publisher.status === "ready") await this.#send();
    const left = this.#pending.take().length;
    if (left > 0) this.#onDrop(left);
    await Promise.all([disconnect(this.#publisher), disconnect(this.#subscriber)]);
  }
}

function connect(options: RedisBusOptions, role: string): Redis {
  const settings = {
    connectionName: `depute-bus-${role}`,
    retryStrategy: (attempt: number) => {
      const delay = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(attempt, 10));
      return delay / 2 + (Math.random() * delay) / 2;
    },
    // Nothing waits inside the client: what cannot be sent now waits here, merged and bounded.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    commandTimeout: COMMAND_LIMIT_MS,
    // A connection that is not answered is let go of soon; nothing is on its way by then.
    disconnectTimeout: 200,
  } satisfies RedisOptions;
  const redis = new Redis(options.url, settings);
  let away = false;
  redis.on("ready", () => {
    away = false;
  });
  redis.on("error", (error: unknown) => {
    // Every failed attempt to connect says the same again.
    if (!away) options.onError(error, `the bus lost its ${role} connection to Redis`);
    away = true;
  });
  return redis;
}

async function disconnect(redis: Redis): Promise<void> {
  const connected = redis.status === "ready" || redis.status === "connect";
  const ended = connected ? new Promise((resolve) => redis.once("end", resolve)) : undefined;
  redis.disconnect();
  await ended;
}
