import type { Clock, Timers } from "@depute/core";
import { DeputeError, ErrorReason } from "@depute/core";
import type { ContextRecord } from "../rules/context.ts";

export interface ContextMemoryOptions {
  readonly clock: Clock;
  readonly timers: Timers;
  /** Bytes of data held at most. Beside it, a context costs some hundred bytes. */
  readonly maxBytes: number;
  /** Contexts held at most. */
  readonly maxContexts: number;
}

/** What of a context is in memory alone. */
export interface Held {
  readonly data: Uint8Array;
  /** Digest of the request that shared it. */
  readonly digest: string;
}

/**
 * The data of contexts that may not be written to disk. It is here and nowhere else, until its time is over; there is no
 * room for more than fit, and none is given up for another.
 */
export class ContextMemory {
  readonly #options: ContextMemoryOptions;
  readonly #held = new Map<string, Held & { readonly forget: () => void }>();
  #bytes = 0;

  constructor(options: ContextMemoryOptions) {
    this.#options = options;
  }

  /** Bytes of data that are held. */
  get bytes(): number {
    return this.#bytes;
  }

  find(id: string): Held | undefined {
    return this.#held.get(id);
  }

  /**
   * Holds all of them, or none.
   *
   * @throws DeputeError LIMIT_EXCEEDED
   */
  add(records: readonly ContextRecord[]): void {
    const { clock, timers, maxBytes, maxContexts } = this.#options;
    const bytes = records.reduce((sum, { envelope }) => sum + envelope.data.length, 0);
    if (this.#bytes + bytes > maxBytes) throw full("bytes", maxBytes);
    if (this.#held.size + records.length > maxContexts) throw full("number", maxContexts);
    for (const { id, envelope, digest, expireMs } of records) {
      const forget = timers.after(expireMs - clock.now(), () => this.remove(id));
      this.#held.set(id, { data: envelope.data, digest, forget });
    }
    this.#bytes += bytes;
  }

  remove(id: string): void {
    const held = this.#held.get(id);
    if (held === undefined) return;
    held.forget();
    this.#held.delete(id);
    this.#bytes -= held.data.length;
  }

  close(): void {
    for (const { forget } of this.#held.values()) forget();
    this.#held.clear();
    this.#bytes = 0;
  }
}

function full(what: string, max: number): DeputeError {
  return new DeputeError(
    ErrorReason.LIMIT_EXCEEDED,
    "there is no room for contexts that may not be persisted",
    {
      metadata: { limit: `context_memory.${what}`, max: String(max) },
    },
  );
}
