import { createHash } from "node:crypto";
import { Client } from "pg";
import { ALL_KEYS, type Bus, type Listener, type OnError } from "./bus.ts";
import { Listeners, Pending } from "./in-process.ts";

/**
 * Maximum number of distinct keys of one topic that wait for the database. With more keys, the topic's wake-ups merge
 * into ALL_KEYS.
 */
const MAX_KEYS = 10_000;
/** Maximum bytes of a notification's payload. Postgres refuses 8 000 and more. */
const MAX_PAYLOAD_BYTES = 7_900;
/** Maximum bytes of a channel's name. */
const MAX_CHANNEL_BYTES = 63;
/** Maximum milliseconds to open the connection, and maximum milliseconds to run a statement. */
const CONNECT_LIMIT_MS = 1_500;
const STATEMENT_LIMIT_MS = 5_000;
const FIRST_RETRY_MS = 50;
const LONGEST_RETRY_MS = 2_000;

export interface PostgresBusOptions {
  /** The address of the database: `postgres://user:password@host:port/database`. */
  readonly url: string;
  /**
   * The prefix of the channels' names. Platforms that share a database use different prefixes, so that their wake-ups
   * stay separate.
   */
  readonly namespace: string;
  readonly onError: OnError;
  /** Receives the number of dropped wake-ups: the wake-ups that still waited when the bus was closed. */
  readonly onDrop?: (count: number) => void;
}

/**
 * The bus between processes without Redis, over NOTIFY. Topic t is the channel `NAMESPACE:t`, or a digest of this name
 * if the name is too long. A payload is a list of keys in JSON. The bus calls the listeners of its own process
 * directly, without the database. While the database is unreachable, wake-ups for other processes wait, and too many
 * keys merge into ALL_KEYS. Whenever the database confirms a subscription, its listeners get ALL_KEYS, because they may
 * have missed wake-ups. Transactions of services send no notifications themselves, because Postgres commits all
 * notifying transactions of a server one after the other.
 */
export class PostgresBus implements Bus {
  readonly #options: PostgresBusOptions;
  readonly #listeners: Listeners;
  /** Wake-ups for this process. `#remote` has the wake-ups for other processes. */
  readonly #local = new Pending(MAX_KEYS);
  readonly #remote = new Pending(MAX_KEYS);
  #client: NotifyClient | undefined;
  #retries = 0;
  #retry: NodeJS.Timeout | undefined;
  #scheduled: NodeJS.Immediate | undefined;
  #isFlushDue = false;
  /** The channels' names by topic. The number of topics is small, because topics are constants in the code. */
  readonly #channels = new Map<string, string>();
  #sending: Promise<void> | undefined;
  #connecting: Promise<void>;
  #closed: Promise<void> | undefined;

  constructor(options: PostgresBusOptions) {
    this.#options = options;
    this.#listeners = new Listeners(options.onError);
    this.#connecting = this.#connect();
  }

  publish(topic: string, key: string): void {
    if (this.#closed !== undefined) return;
    if (this.#listeners.has(topic)) this.#local.add(topic, key);
    this.#remote.add(topic, key);
    this.#schedule();
    this.#flushSoon();
  }

  subscribe(topic: string, listener: Listener): () => void {
    if (this.#closed !== undefined) return () => {};
    const isFirst = !this.#listeners.has(topic);
    const remove = this.#listeners.add(topic, listener);
    if (isFirst) this.#listen([topic]);
    return () => {
      const before = this.#listeners.has(topic);
      remove();
      if (before && !this.#listeners.has(topic)) {
        // A failure means that the connection broke. The next connection listens only to topics that still have
        // listeners.
        this.#client?.query(`UNLISTEN ${this.#channelName(topic)}`).catch(() => {});
      }
    };
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  #channel(topic: string): string {
    const known = this.#channels.get(topic);
    if (known !== undefined) return known;
    const channel = this.#channelOf(topic);
    this.#channels.set(topic, channel);
    return channel;
  }

  #channelOf(topic: string): string {
    const name = `${this.#options.namespace}:${topic}`;
    const isShort = Buffer.byteLength(name) <= MAX_CHANNEL_BYTES;
    return isShort ? name : createHash("sha256").update(name).digest("base64url");
  }

  #channelName(topic: string): string {
    return `"${this.#channel(topic).replaceAll('"', '""')}"`;
  }

  #schedule(): void {
    this.#scheduled ??= setImmediate(() => {
      this.#scheduled = undefined;
      for (const { topic, key } of this.#local.take()) this.#listeners.deliver(topic, key);
      this.#flush();
    });
  }

  /**
   * Sends the wake-ups of one commit to other processes before this process does other work, because they have the
   * longer way.
   */
  #flushSoon(): void {
    if (this.#isFlushDue) return;
    this.#isFlushDue = true;
    process.nextTick(() => {
      this.#isFlushDue = false;
      this.#flush();
    });
  }

  /** Sends one batch at a time. While the database is slow, waiting wake-ups merge into the next batch. */
  #flush(): void {
    if (this.#sending !== undefined || this.#remote.isEmpty || this.#client === undefined) return;
    this.#sending = this.#send(this.#client).finally(() => {
      this.#sending = undefined;
      if (!this.#remote.isEmpty && this.#client !== undefined) this.#schedule();
    });
  }

  async #send(client: NotifyClient): Promise<void> {
    const batch = this.#remote.take();
    const payloads = payloadsOf(batch);
    try {
      await client.query(
        "SELECT pg_notify(channel, payload) FROM unnest($1::text[], $2::text[]) AS of (channel, payload)",
        [payloads.map(({ topic }) => this.#channel(topic)), payloads.map(({ payload }) => payload)],
      );
    } catch (error) {
      // Without an answer, these wake-ups may or may not have been sent. They are sent again, because a duplicate is
      // harmless.
      for (const { topic, key } of batch) this.#remote.add(topic, key);
      this.#lose(client, error);
    }
  }

  #listen(topics: readonly string[]): void {
    const client = this.#client;
    if (client === undefined || topics.length === 0) return;
    const statement = topics.map((topic) => `LISTEN ${this.#channelName(topic)}`).join("; ");
    client.query(statement).then(
      () => this.#listeners.deliverEverything(topics),
      (error: unknown) => this.#lose(client, error),
    );
  }

  async #connect(): Promise<void> {
    const { url, namespace } = this.#options;
    const client: NotifyClient = new Client({
      connectionString: url,
      application_name: `depute bus ${namespace}`,
      connectionTimeoutMillis: CONNECT_LIMIT_MS,
      query_timeout: STATEMENT_LIMIT_MS,
      keepAlive: true,
    });
    client.on("error", (error) => this.#lose(client, error));
    client.on("end", () => this.#lose(client, new Error("the database ended the connection")));
    try {
      await client.connect();
      // The commit of a notification need not wait for a flush to disk.
      await client.query("SET synchronous_commit = off");
      const { rows } = await client.query("SELECT pg_backend_pid() AS pid");
      const pid: unknown = rows[0]?.pid;
      client.on("notification", ({ channel, payload, processId }) => {
        // This process has already called its own listeners.
        if (processId !== pid) this.#receive(channel, payload ?? "");
      });
    } catch (error) {
      return this.#again(client, error);
    }
    if (this.#closed !== undefined) return void client.end().catch(() => {});
    this.#client = client;
    this.#retries = 0;
    this.#listen(this.#listeners.topics);
    this.#schedule();
  }

  #receive(channel: string, payload: string): void {
    for (const topic of this.#listeners.topics) {
      if (this.#channel(topic) !== channel) continue;
      for (const key of keysOf(payload)) this.#listeners.deliver(topic, key);
    }
  }

  #lose(client: NotifyClient, error: unknown): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    this.#again(client, error);
  }

  /** Opens the connection again after a delay. Reports only the first failure of an outage. */
  #again(client: NotifyClient, error: unknown): void {
    client.end().catch(() => {});
    if (this.#closed !== undefined) return;
    if (this.#retries === 0) this.#options.onError(error, "the bus lost its connection to the database");
    const delayMs = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(this.#retries++, 10));
    clearTimeout(this.#retry);
    this.#retry = setTimeout(
      () => {
        this.#connecting = this.#connect();
      },
      delayMs / 2 + (Math.random() * delayMs) / 2,
    );
  }

  async #close(): Promise<void> {
    this.#listeners.clear();
    clearImmediate(this.#scheduled);
    clearTimeout(this.#retry);
    while (this.#sending !== undefined) await this.#sending;
    clearImmediate(this.#scheduled);
    const client = this.#client;
    if (client !== undefined && !this.#remote.isEmpty) await this.#send(client);
    this.#client = undefined;
    const unsentCount = this.#remote.take().length;
    if (unsentCount > 0) this.#options.onDrop?.(unsentCount);
    clearTimeout(this.#retry);
    await this.#connecting;
    await client?.end().catch(() => {});
  }
}

type NotifyClient = InstanceType<typeof Client>;

/** Distributes wake-ups over notifications. A key that is too long for any payload becomes ALL_KEYS. */
function payloadsOf(batch: readonly { topic: string; key: string }[]): { topic: string; payload: string }[] {
  const keysByTopic = Map.groupBy(batch, ({ topic }) => topic);
  return [...keysByTopic].flatMap(([topic, wakeUps]) => {
    const payloads: string[] = [];
    let members: string[] = [];
    let bytes = 2;
    for (const { key } of wakeUps) {
      const whole = JSON.stringify(key);
      const member = Buffer.byteLength(whole) + 3 > MAX_PAYLOAD_BYTES ? JSON.stringify(ALL_KEYS) : whole;
      const size = Buffer.byteLength(member) + 1;
      if (bytes + size > MAX_PAYLOAD_BYTES) {
        payloads.push(`[${members}]`);
        members = [];
        bytes = 2;
      }
      members.push(member);
      bytes += size;
    }
    payloads.push(`[${members}]`);
    return payloads.map((payload) => ({ topic, payload }));
  });
}

/** Returns the keys of a payload; ALL_KEYS if the payload is not a list of keys, because another program sent it. */
function keysOf(payload: string): string[] {
  try {
    const keys: unknown = JSON.parse(payload);
    if (Array.isArray(keys) && keys.every((key) => typeof key === "string")) return keys;
  } catch {
    // The payload is not JSON, so another program sent it.
  }
  return [ALL_KEYS];
}
