import { DeputeError, ErrorReason, type Timers } from "@depute/core";
import type { Logger } from "./log.ts";

/** Milliseconds from the addition of the first waiting item to the write, unless `batch` items wait before that. */
const FLUSH_MS = 250;

export interface BatchedWritesOptions<Item> {
  /** Writes the items in order. Resolves when they are durable. */
  readonly write: (items: readonly Item[]) => Promise<unknown>;
  /**
   * Maximum number of items in one write. When this many items wait, the write starts without a delay, unless the last
   * write failed.
   */
  readonly batch: number;
  /** Number of waiting items from which `assertRoom` throws, because writes fail or are slow. */
  readonly maxWaiting: number;
  /** The name of `maxWaiting` in refusals. */
  readonly limitName: string;
  /** The plural noun for the items in log lines and refusals, such as `decisions`. */
  readonly itemsName: string;
  readonly timers: Timers;
  readonly log: Logger;
}

/**
 * Writes items in the order of their addition, many in one write. `add` returns before the write. After a failed write,
 * its items stay in memory, and the write is repeated.
 */
export class BatchedWrites<Item> {
  readonly #options: BatchedWritesOptions<Item>;
  #waiting: Item[] = [];
  #cancelTimer: (() => void) | undefined;
  #flushing: Promise<void> | undefined;
  #failed = false;
  #closed = false;

  constructor(options: BatchedWritesOptions<Item>) {
    this.#options = options;
  }

  /**
   * Requires that the maximum number of waiting items is not reached.
   *
   * @throws DeputeError LIMIT_EXCEEDED
   */
  assertRoom(): void {
    const { maxWaiting, limitName, itemsName } = this.#options;
    if (this.#waiting.length < maxWaiting) return;
    throw new DeputeError(
      ErrorReason.LIMIT_EXCEEDED,
      `${itemsName} cannot be recorded now; try again later`,
      { metadata: { limit: limitName, max: String(maxWaiting) } },
    );
  }

  /** Adds an item. Its write starts within FLUSH_MS, unless an earlier write is slow or fails. */
  add(item: Item): void {
    this.#waiting.push(item);
    if (this.#waiting.length >= this.#options.batch && !this.#failed) void this.#flush();
    else this.#schedule();
  }

  /** Writes the waiting items, and stops. If a write fails, logs how many items are lost. */
  async close(): Promise<void> {
    const { log, itemsName } = this.#options;
    this.#closed = true;
    this.#cancelTimer?.();
    await this.#flushing;
    this.#failed = false;
    while (this.#waiting.length > 0 && !this.#failed) await this.#flush();
    if (this.#waiting.length > 0) {
      log.error({ [itemsName]: this.#waiting.length }, `${itemsName} could not be recorded`);
    }
  }

  #schedule(): void {
    if (this.#closed || this.#cancelTimer !== undefined || this.#flushing !== undefined) return;
    this.#cancelTimer = this.#options.timers.after(FLUSH_MS, () => {
      this.#cancelTimer = undefined;
      void this.#flush();
    });
  }

  #flush(): Promise<void> {
    this.#flushing ??= this.#writeSome().finally(() => {
      this.#flushing = undefined;
      if (this.#waiting.length > 0) this.#schedule();
    });
    return this.#flushing;
  }

  /**
   * Writes the oldest waiting items. The promise never rejects: after a failure, the items stay in memory in their
   * order.
   */
  async #writeSome(): Promise<void> {
    const { batch, log, itemsName, write } = this.#options;
    const items = this.#waiting.slice(0, batch);
    if (items.length === 0) return;
    try {
      await write(items);
      this.#waiting.splice(0, items.length);
      this.#failed = false;
    } catch (err) {
      if (!this.#failed) log.error({ err }, `${itemsName} cannot be recorded; trying again`);
      this.#failed = true;
    }
  }
}
