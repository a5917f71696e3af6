import type { Timers } from "@depute/core";
import type { Peer } from "../peers/peer.ts";
import type { Numbered } from "../rules/peer-event.ts";

/** Streams of suspended work that are kept open at once; each costs a connection. */
export const MAX_KEPT = 64;

/** How long a stream is kept, milliseconds: a connection for work that nobody resumes is for nothing. */
const KEPT_MS = 3_600_000;

/** A stream that goes on where it was left. */
export interface OpenStream {
  readonly events: AsyncIterator<Numbered>;
  readonly peer: Peer;
  /** Ends it. */
  readonly stop: AbortController;
}

/**
 * Streams of work that its endpoint has suspended: NEKTE tells on them how the work goes on once it is resumed. Dropped
 * ones are missed only where the endpoint cannot be asked again from where they ended.
 */
export class Kept {
  readonly #timers: Timers;
  readonly #streams = new Map<string, OpenStream & { readonly cancel: () => void }>();

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  keep(taskId: string, stream: OpenStream): void {
    this.drop(taskId);
    const [oldest] = this.#streams.keys();
    if (this.#streams.size >= MAX_KEPT && oldest !== undefined) this.drop(oldest);
    const cancel = this.#timers.after(KEPT_MS, () => this.drop(taskId));
    this.#streams.set(taskId, { ...stream, cancel });
  }

  take(taskId: string): OpenStream | undefined {
    const stream = this.#streams.get(taskId);
    this.#streams.delete(taskId);
    stream?.cancel();
    return stream;
  }

  drop(taskId: string): void {
    const stream = this.take(taskId);
    if (stream === undefined) return;
    stream.stop.abort();
    stream.peer.close();
  }

  close(): void {
    for (const taskId of [...this.#streams.keys()]) this.drop(taskId);
  }
}
