import { useEffect, useRef, useState } from "react";
import { isPassing, type Refusal, refusalOf } from "./refusal.ts";

/**
 * Maximum milliseconds of the first pause before a broken stream is opened again. The maximum doubles with each pause,
 * up to LONGEST_PAUSE_MS, until an item arrives. Each pause is random: between half of the maximum and the maximum.
 */
const FIRST_PAUSE_MS = 400;
const LONGEST_PAUSE_MS = 5_000;

export type Connection =
  | { readonly state: "connecting" | "live" | "reconnecting" | "ended" }
  | { readonly state: "refused"; readonly refusal: Refusal };

/** A server stream that the page follows, and the functions that handle its items. */
export interface Followed<Item> {
  /** Opens the stream. The stream must continue after the last item that `take` handled. */
  readonly open: (signal: AbortSignal) => AsyncIterable<Item>;
  /** Handles an item. Returns true if no further item can follow; the stream is then closed. */
  readonly take: (item: Item) => boolean;
  /**
   * Called when a stream has ended and `take` never returned true. Returns true if the stream is complete, so that it
   * must not be opened again.
   */
  readonly isOver?: () => boolean;
}

/**
 * Follows a server stream as long as the page is open. If the stream breaks, the hook opens a new stream, which
 * continues after the last item. If the platform refuses the stream, the hook does not open another one.
 *
 * @param key identifies the followed object; a new key closes the stream and follows the new object from its start
 */
export function useFollow<Item>(key: string, followed: Followed<Item>): Connection {
  const [connection, setConnection] = useState<Connection>({ state: "connecting" });
  const latest = useRef(followed);
  latest.current = followed;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key alone names the stream
  useEffect(() => {
    const leaving = new AbortController();
    setConnection({ state: "connecting" });
    void follow(() => latest.current, leaving.signal, setConnection);
    return () => leaving.abort();
  }, [key]);
  return connection;
}

async function follow<Item>(
  followed: () => Followed<Item>,
  signal: AbortSignal,
  tell: (connection: Connection) => void,
): Promise<void> {
  for (let pause = FIRST_PAUSE_MS; !signal.aborted; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    try {
      for await (const item of followed().open(signal)) {
        if (signal.aborted) return;
        pause = FIRST_PAUSE_MS;
        tell({ state: "live" });
        if (followed().take(item)) return tell({ state: "ended" });
      }
      if (signal.aborted) return;
      if (followed().isOver?.() === true) return tell({ state: "ended" });
    } catch (error) {
      if (signal.aborted) return;
      if (!isPassing(error)) return tell({ state: "refused", refusal: refusalOf(error) });
    }
    tell({ state: "reconnecting" });
    await delay(pause * (0.5 + Math.random() / 2), signal);
  }
}

function delay(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
