import type { Timers } from "@depute/core";
import type { Peer } from "../peers/peer.ts";
import type { Numbered } from "../rules/peer-event.ts";

/** Maximum number of kept streams: open streams of suspended tasks. Each occupies a connection. */
export const MAX_KEPT = 64;

/** Milliseconds for which the stream of a suspended task stays open. */
const KEPT_MS = 3_600_000;

/** An open stream that may yield more events. */
export interface OpenStream {
  readonly events: AsyncIterator<Numbered>;
  readonly peer: Peer;
  /** Ends the stream. */
  readonly stop: AbortController;
}

/**
 * Keeps the streams of suspended tasks open, because NEKTE continues on the same stream after a resume. If an endpoint
 * cannot resume a stream that was closed, the work is lost.
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
