import type { MessageRow } from "../store/session-rows.ts";

/** Sessions of which the newest messages are at hand, messages of each, and the longest one kept, in bytes. */
const MAX_SESSIONS = 256;
const MAX_MESSAGES = 16;
const MAX_BYTES = 16_384;

/**
 * The newest messages of sessions that this process has appended to, so that watchers who are told of one need not all read
 * it. Messages never change, so what is here is true; what is not here is in the store.
 */
export class RecentMessages {
  readonly #sessions = new Map<string, MessageRow[]>();

  /** Notes a message that is durable. */
  add(sessionId: string, row: MessageRow, bytes: number): void {
    const rows = this.#sessions.get(sessionId) ?? [];
    this.#sessions.delete(sessionId);
    if (bytes > MAX_BYTES) return;
    const isNext = rows.at(-1)?.ordinal === row.ordinal - 1;
    this.#sessions.set(sessionId, isNext ? [...rows.slice(1 - MAX_MESSAGES), row] : [row]);
    for (const oldest of this.#sessions.keys()) {
      if (this.#sessions.size <= MAX_SESSIONS) return;
      this.#sessions.delete(oldest);
    }
  }

  /** The messages after a place; undefined when the next one is not at hand. */
  after(sessionId: string, ordinal: number, limit: number): MessageRow[] | undefined {
    const rows = this.#sessions.get(sessionId) ?? [];
    const from = rows.findIndex((row) => row.ordinal === ordinal + 1);
    return from < 0 ? undefined : rows.slice(from, from + limit);
  }
}
