import { useQueryClient } from "@tanstack/react-query";
import { type Connection, useFollow } from "./follow.ts";
import { useSoon } from "./soon.ts";

/** Changes cause a new read, at most once in this many milliseconds. */
const READ_MS = 300;

/**
 * Milliseconds between two reads of a page while its stream is open. Between the reads, the stream reports each change.
 */
const LIVE_MS = 15_000;

/**
 * Reads the data of the open page again soon after each item of a stream. The page must also read its data at
 * intervals, because some callers may not open the stream.
 *
 * @param key identifies the stream
 */
export function useWake<Item>(key: string, open: (signal: AbortSignal) => AsyncIterable<Item>): Connection {
  const queries = useQueryClient();
  const read = useSoon(() => void queries.invalidateQueries(), READ_MS);
  return useFollow(key, {
    open,
    take: () => {
      read();
      return false;
    },
  });
}

/**
 * Returns the milliseconds between two reads of a page's data. The time is longer while the stream is open.
 *
 * @param withoutStreamMs the time between two reads while the stream is not open
 */
export function readPause({ state }: Connection, withoutStreamMs: number): number {
  return state === "live" ? LIVE_MS : withoutStreamMs;
}
