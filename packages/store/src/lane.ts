import { DeputeError, ErrorReason, nextTurn } from "@depute/core";

export interface LaneOptions<Job> {
  /** Named in the refusal when the lane is full. */
  readonly limit: string;
  readonly max: number;
  /** Whether the first job waits for the end of the turn of the event loop, so that others can join it. */
  readonly gather: boolean;
  /** Does some of the jobs, at least one, taking them by `next`; never throws. */
  readonly serve: (next: () => Job | undefined) => Promise<void>;
}

/** A bounded queue in front of something that one job uses at a time. */
export class Lane<Job> {
  readonly #options: LaneOptions<Job>;
  readonly #queue: Job[] = [];
  #pumping: Promise<void> | undefined;
  #closed = false;

  constructor(options: LaneOptions<Job>) {
    this.#options = options;
  }

  /** @throws DeputeError LIMIT_EXCEEDED when the queue is full, SHUTTING_DOWN after `close` */
  push(job: Job): void {
    if (this.#closed) throw new DeputeError(ErrorReason.SHUTTING_DOWN, "the store is closed");
    const { limit, max } = this.#options;
    if (this.#queue.length >= max) {
      const metadata = { limit, max: String(max) };
      throw new DeputeError(ErrorReason.LIMIT_EXCEEDED, "the store has too much to do; call again later", {
        metadata,
      });
    }
    this.#queue.push(job);
    this.#pumping ??= this.#pump();
  }

  /** Takes no more, and resolves when everything taken is done. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#pumping;
  }

  async #pump(): Promise<void> {
    if (this.#options.gather) await nextTurn();
    while (this.#queue.length > 0) {
      await this.#options.serve(() => this.#queue.shift());
      // Others wait for the event loop too, and what they send may join the next batch.
      if (this.#queue.length > 0) await nextTurn();
    }
    this.#pumping = undefined;
  }
}
