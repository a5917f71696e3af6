import type { Clock, Timers } from "@depute/core";
import { DeputeError, ErrorReason, invalid } from "@depute/core";
import type { ContextRecord } from "../rules/context.ts";

export interface ContextMemoryOptions {
  readonly clock: Clock;
  readonly timers: Timers;
  /** Maximum total size of the data in bytes. Each context costs some hundred bytes more. */
  readonly maxBytes: number;
  /** Maximum number of contexts. */
  readonly maxContexts: number;
  /** Whether other replicas must read the contexts, too. They cannot read the memory of this process. */
  readonly isShared: boolean;
}

/** The part of a context that is kept in memory only. */
export interface Held {
  readonly data: Uint8Array;
  /** Digest of the request that shared the context. */
  readonly digest: string;
}

/**
 * The data of contexts that must not be written to disk. The memory holds a context until it expires. The memory
 * is bounded, and a new context never displaces a stored one.
 */
export class ContextMemory {
  readonly #options: ContextMemoryOptions;
  readonly #entries = new Map<string, Held & { readonly forget: () => void }>();
  #bytes = 0;

  constructor(options: ContextMemoryOptions) {
    this.#options = options;
  }

  /** Total size of the data in memory, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  find(id: string): Held | undefined {
    return this.#entries.get(id);
  }

  /**
   * Adds all records, or none of them.
   *
   * @throws DeputeError LIMIT_EXCEEDED, INVALID_REQUEST for a service with replicas
   */
  add(records: readonly ContextRecord[]): void {
    const { clock, timers, maxBytes, maxContexts, isShared } = this.#options;
    if (isShared) {
      throw invalid(
        "permissions.persist",
        "has to be true: this service has replicas, which share contexts only through the database",
      );
    }
    const bytes = records.reduce((sum, { envelope }) => sum + envelope.data.length, 0);
    if (this.#bytes + bytes > maxBytes) throw full("bytes", maxBytes);
    if (this.#entries.size + records.length > maxContexts) throw full("number", maxContexts);
    for (const { id, envelope, digest, expireMs } of records) {
      const forget = timers.after(expireMs - clock.now(), () => this.remove(id));
      this.#entries.set(id, { data: envelope.data, digest, forget });
    }
    this.#bytes += bytes;
  }

  remove(id: string): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    entry.forget();
    this.#entries.delete(id);
    this.#bytes -= entry.data.length;
  }

  close(): void {
    for (const { forget } of this.#entries.values()) forget();
    this.#entries.clear();
    this.#bytes = 0;
  }
}

function full(limitName: string, max: number): DeputeError {
  return new DeputeError(
    ErrorReason.LIMIT_EXCEEDED,
    "there is no room for contexts that may not be persisted",
    {
      metadata: { limit: `context_memory.${limitName}`, max: String(max) },
    },
  );
}
