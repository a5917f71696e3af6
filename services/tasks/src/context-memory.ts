import type { Clock, Timers } from "@depute/core";
import { DeputeError, ErrorReason } from "@depute/core";
import type { ContextRecord, Reader } from "./rules/context.ts";

export interface ContextMemoryOptions {
  readonly clock: Clock;
  readonly timers: Timers;
  /** Bytes of data held at most. Beside it, a context costs about a kilobyte. */
  readonly maxBytes: number;
  /** Contexts held at most. */
  readonly maxContexts: number;
}

/**
 * Contexts that may not be written to disk. They are here and nowhere else, until their time is over; there is no room
 * for more than fit, and none is given up for another.
 */
export class ContextMemory {
  readonly #options: ContextMemoryOptions;
  readonly #held = new Map<string, { record: ContextRecord; forget: () => void }>();
  #bytes = 0;

  constructor(options: ContextMemoryOptions) {
    this.#options = options;
  }

  /** Bytes of data that are held. */
  get bytes(): number {
    return this.#bytes;
  }

  find(id: string): ContextRecord | undefined {
    return this.#held.get(id)?.record;
  }

  /** The contexts that were made of another one, wherever that is kept. */
  derivedFrom(sourceId: string): ContextRecord[] {
    return [...this.#held.values()]
      .map(({ record }) => record)
      .filter((record) => record.derivedFrom.includes(sourceId));
  }

  /** The first context that is as asked for. */
  search(matches: (record: ContextRecord) => boolean): ContextRecord | undefined {
    for (const { record } of this.#held.values()) if (matches(record)) return record;
    return undefined;
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
    for (const record of records) {
      const forget = timers.after(record.expireMs - clock.now(), () => this.#remove(record.id));
      this.#held.set(record.id, { record, forget });
    }
    this.#bytes += bytes;
  }

  addReader(id: string, reader: Reader): void {
    const held = this.#held.get(id);
    if (held === undefined || held.record.readers.some(({ agentId }) => agentId === reader.agentId)) return;
    held.record = { ...held.record, readers: [...held.record.readers, reader] };
  }

  /** Forgets the data; that it was there is remembered until its time is over. */
  revoke(id: string): void {
    const held = this.#held.get(id);
    if (held === undefined) return;
    this.#bytes -= held.record.envelope.data.length;
    const envelope = { ...held.record.envelope, data: new Uint8Array() };
    held.record = { ...held.record, envelope, isRevoked: true };
  }

  close(): void {
    for (const { forget } of this.#held.values()) forget();
    this.#held.clear();
    this.#bytes = 0;
  }

  #remove(id: string): void {
    const held = this.#held.get(id);
    if (held === undefined) return;
    this.#held.delete(id);
    this.#bytes -= held.record.envelope.data.length;
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
