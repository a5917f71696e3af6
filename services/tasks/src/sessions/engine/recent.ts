import type { MessageRow } from "../store/session-rows.ts";

/**
 * Limits of the cache: sessions (MAX_SESSIONS), messages of a session (MAX_MESSAGES), and bytes of a message
 * (MAX_BYTES).
 */
const MAX_SESSIONS = 256;
const MAX_MESSAGES = 16;
const MAX_BYTES = 16_384;

/**
 * Caches the latest messages of sessions to which this process appended, so that watchers read the store less. Messages
 * never change, so a cached message is never stale.
 */
export class RecentMessages {
  readonly #sessions = new Map<string, MessageRow[]>();

  /** Caches a committed message. */
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

  /** Returns the messages after a position; undefined if the cache does not have the next message. */
  after(sessionId: string, ordinal: number, limit: number): MessageRow[] | undefined {
    const rows = this.#sessions.get(sessionId) ?? [];
    const from = rows.findIndex((row) => row.ordinal === ordinal + 1);
    return from < 0 ? undefined : rows.slice(from, from + limit);
  }
}
