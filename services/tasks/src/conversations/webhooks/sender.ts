import { toJson } from "@bufbuild/protobuf";
import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { type StreamResponse, StreamResponseSchema } from "@depute/contracts/lf/a2a/v1/a2a_pb";
import type { Clock, Random, Timers } from "@depute/core";
import { DeadlineLoop, type Logger, type Outbound, type WorkLease, withTimeout } from "@depute/service";
import { changeOf, type Place, toStream } from "@depute/wire/a2a";
import { backoffMs, type TaskEngine } from "../../core/index.ts";
import {
  advanceWebhook,
  deleteWebhook,
  dueWebhooks,
  findWebhook,
  nextWebhook,
  postponeWebhook,
  type WebhookRow,
} from "../store/webhook-rows.ts";
import type { WebhookSeal } from "./secrets.ts";

/** Maximum number of concurrent deliveries. */
const AT_ONCE = 32;
/**
 * Maximum number of concurrent deliveries for one delegator, so that slow receivers do not delay other delegators'
 * deliveries.
 */
const PER_DELEGATOR = 8;
/** Maximum milliseconds between two reads of the store. */
const MAX_WAIT_MS = 30_000;
/** Timeout of one delivery, in milliseconds. (A2A 4.3.3) */
const TIMEOUT_MS = 10_000;
/** Maximum number of bytes that the sender reads from a response. The sender ignores the body. */
const MAX_ANSWER_BYTES = 1024;
/** Maximum number of events that one read of a task's log returns. */
const BATCH = 20;

export interface SenderOptions {
  readonly engine: Pick<TaskEngine, "store" | "find" | "events">;
  readonly clock: Clock;
  readonly timers: Timers;
  /** Source of randomness for the jitter of backoffs. */
  readonly random: Random;
  readonly log: Logger;
  readonly lease?: WorkLease | undefined;
  readonly outbound: Pick<Outbound, "send">;
  readonly seal: WebhookSeal;
}

/**
 * Posts the events of tasks to the webhooks of their conversations. The sender posts each event at least once, in the
 * order of the task's log. The log is the outbox: a webhook's row stores the sequence of the last accepted event. After
 * 12 failed attempts in a row, which take about half an hour, the sender deletes the webhook. (A2A 4.3.3)
 */
export class WebhookSender {
  readonly #options: SenderOptions;
  readonly #loop: DeadlineLoop;
  readonly #closing = new AbortController();
  /** The deliveries under way, by webhook. */
  readonly #sending = new Map<string, { readonly delegator: string; readonly done: Promise<void> }>();

  constructor(options: SenderOptions) {
    this.#options = options;
    const { clock, timers, log, lease } = options;
    this.#loop = new DeadlineLoop({
      clock,
      timers,
      log,
      lease,
      failureMessage: "the webhooks with new events could not be read",
      maxWaitMs: MAX_WAIT_MS,
      runDueWork: (signal) => this.#look(signal),
    });
  }

  start(): void {
    this.#loop.start();
  }

  /** Checks for new events now. */
  wake(): void {
    this.#loop.wake();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#loop.close();
    await Promise.all([...this.#sending.values()].map(({ done }) => done));
  }

  /**
   * Begins the deliveries that are due, up to AT_ONCE and PER_DELEGATOR. The end of each delivery wakes the loop again.
   */
  async #look(signal: AbortSignal): Promise<number | undefined> {
    const { clock, engine } = this.#options;
    const nowMs = clock.now();
    for (let isMore = true; isMore && !signal.aborted && this.#sending.size < AT_ONCE; ) {
      const due = await engine.store.read((tx) =>
        dueWebhooks(tx, nowMs, this.#busyDelegators(), 2 * AT_ONCE),
      );
      isMore = false;
      for (const row of due) {
        if (this.#begin(row)) isMore = true;
      }
    }
    return engine.store.read((tx) => nextWebhook(tx, nowMs));
  }

  #busyDelegators(): string[] {
    const counts = new Map<string, number>();
    for (const { delegator } of this.#sending.values()) {
      counts.set(delegator, (counts.get(delegator) ?? 0) + 1);
    }
    return [...counts].filter(([, count]) => count >= PER_DELEGATOR).map(([delegator]) => delegator);
  }

  /** @returns whether a delivery began */
  #begin(row: WebhookRow): boolean {
    const key = JSON.stringify([row.taskId, row.id]);
    const { delegator } = row;
    if (this.#closing.signal.aborted || this.#sending.size >= AT_ONCE || this.#sending.has(key)) return false;
    if (this.#busyDelegators().includes(delegator)) return false;
    const done = this.#deliver(row)
      .catch((err: unknown) => {
        this.#options.log.warn({ err, task: row.taskId }, "the position of a webhook could not be stored");
      })
      .finally(() => {
        this.#sending.delete(key);
        if (!this.#closing.signal.aborted) this.#loop.wake();
      });
    this.#sending.set(key, { delegator, done });
    return true;
  }

  /**
   * Sends the next events to a webhook, and stores the sequence of each accepted event. After a failure, postpones the
   * next attempt, or deletes the webhook.
   */
  async #deliver({ taskId, id }: WebhookRow): Promise<void> {
    const { engine, clock, random, log } = this.#options;
    const { signal } = this.#closing;
    const found = await engine.store.read((tx) => this.#read(tx, taskId, id));
    if (found === undefined) return;
    const { webhook, place, events } = found;
    let { attempts } = webhook;
    try {
      for (const event of events) {
        for (const response of toStream(changeOf(event, place), place)) await this.#post(webhook, response);
        await this.#advance(webhook, event.sequence);
        attempts = 0;
      }
    } catch (err) {
      if (signal.aborted) return;
      attempts += 1;
      log.info({ err, task: taskId, attempts }, "a delivery to a webhook failed");
      const waitMs = backoffMs(attempts, random());
      await engine.store.write((tx) =>
        waitMs === undefined
          ? deleteWebhook(tx, taskId, id)
          : postponeWebhook(tx, webhook, attempts, clock.now() + waitMs),
      );
    }
  }

  async #read(tx: Parameters<typeof findWebhook>[0], taskId: string, id: string) {
    const { engine } = this.#options;
    const webhook = await findWebhook(tx, taskId, id);
    const record = await engine.find(tx, taskId);
    if (webhook === undefined || record === undefined) return undefined;
    const place: Place = { taskId, contextId: record.task.correlationId };
    const events: TaskEvent[] = await engine.events(tx, taskId, BigInt(webhook.sentSequence), BATCH);
    return { webhook, place, events };
  }

  async #advance(webhook: WebhookRow, sequence: bigint): Promise<void> {
    const { engine, clock } = this.#options;
    await engine.store.write((tx) => advanceWebhook(tx, webhook, sequence, clock.now()));
  }

  /**
   * @throws Error if the receiver does not accept the response in time, or if the webhook's secrets cannot be opened
   */
  async #post(webhook: WebhookRow, response: StreamResponse): Promise<void> {
    const { outbound, timers, seal } = this.#options;
    const { token, credentials } = seal.open(webhook);
    const body = JSON.stringify(toJson(StreamResponseSchema, response));
    const headers = {
      "content-type": "application/a2a+json",
      "content-length": String(Buffer.byteLength(body)),
      ...(token !== "" && { "x-a2a-notification-token": token }),
      ...(webhook.scheme !== "" && { authorization: `${webhook.scheme} ${credentials}`.trimEnd() }),
    };
    const status = await withTimeout(timers, TIMEOUT_MS, this.#closing.signal, async (signal) => {
      const limits = { signal, idleMs: TIMEOUT_MS, maxBytes: MAX_ANSWER_BYTES };
      const answer = await outbound.send(webhook.url, { headers, body, ...limits });
      await drained(answer.body);
      return answer.status;
    });
    if (status < 200 || status > 299) throw new Error(`the receiver answered with status ${status}`);
  }
}

/**
 * Reads a response's body to its end, so that the sender can use the connection again. Ignores every error, including
 * the error for a body that is too long.
 */
async function drained(body: AsyncIterable<Uint8Array>): Promise<void> {
  try {
    for await (const _ of body);
  } catch {
    // The status code has already shown whether the delivery succeeded, so this code ignores an error in the body.
  }
}
