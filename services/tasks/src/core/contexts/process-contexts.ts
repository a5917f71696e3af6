import type { Clock, Timers } from "@depute/core";
import { invalid } from "@depute/core";
import type { ContextRecord } from "../rules/context.ts";
import { type ContextRoom, limitWithoutRoom, noRoom } from "../rules/context-room.ts";
import type { ContextMemory, Held, HeldSince } from "./context-memory.ts";

export interface ProcessContextsOptions {
  readonly clock: Clock;
  readonly timers: Timers;
  /** Returns the limits for an owner's contexts. */
  readonly roomFor: (owner: string) => ContextRoom;
  /**
   * Whether other replicas must read the contexts too. If true, `add` throws, because replicas cannot read the memory
   * of this process.
   */
  readonly isShared: boolean;
}

interface Entry extends Held {
  readonly owner: string;
  readonly addMs: number;
  readonly forget: () => void;
}

/** The memory for contexts of a service that runs as one process. */
export class ProcessContexts implements ContextMemory {
  readonly isAway = false;
  readonly #options: ProcessContextsOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #numbers = new Map<string, number>();
  #bytes = 0;

  constructor(options: ProcessContextsOptions) {
    this.#options = options;
  }

  /** Total size of the data in memory, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  find(id: string): Held | undefined {
    return this.#entries.get(id);
  }

  add(records: readonly ContextRecord[]): void {
    const { clock, timers, roomFor, isShared } = this.#options;
    const owner = records[0]?.owner ?? "";
    if (isShared) {
      throw invalid(
        "permissions.persist",
        "must be true: without Redis, the replicas of this service share contexts only through the database",
      );
    }
    const bytes = records.reduce((sum, { envelope }) => sum + envelope.data.length, 0);
    const use = {
      bytes: this.#bytes,
      number: this.#entries.size,
      ofOwner: this.#numbers.get(owner) ?? 0,
    };
    const limit = limitWithoutRoom(use, { bytes, number: records.length }, roomFor(owner));
    if (limit !== undefined) throw noRoom(limit, roomFor(owner));
    const addMs = clock.now();
    for (const { id, envelope, digest, expireMs } of records) {
      const forget = timers.after(expireMs - addMs, () => this.remove(id));
      this.#entries.set(id, { data: envelope.data, digest, owner, addMs, forget });
    }
    this.#bytes += bytes;
    this.#numbers.set(owner, use.ofOwner + records.length);
  }

  remove(id: string): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    entry.forget();
    this.#entries.delete(id);
    this.#bytes -= entry.data.length;
    const rest = (this.#numbers.get(entry.owner) ?? 0) - 1;
    if (rest > 0) this.#numbers.set(entry.owner, rest);
    else this.#numbers.delete(entry.owner);
  }

  using<T>(run: () => Promise<T>): Promise<T> {
    return run();
  }

  async lostOf(ids: readonly string[]): Promise<string[]> {
    return ids.filter((id) => !this.#entries.has(id));
  }

  async sweep(orphans: (held: readonly HeldSince[]) => Promise<readonly string[]>): Promise<void> {
    const held = [...this.#entries].map(([id, { addMs }]) => ({ id, addMs }));
    for (const id of await orphans(held)) this.remove(id);
  }

  close(): void {
    for (const { forget } of this.#entries.values()) forget();
    this.#entries.clear();
    this.#numbers.clear();
    this.#bytes = 0;
  }
}
