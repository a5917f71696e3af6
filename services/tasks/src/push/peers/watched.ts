import type { Timers } from "@depute/core";

/** How long a source may be silent, and what decides whether to wait longer. */
export interface Watch {
  readonly timers: Timers;
  /** Milliseconds of silence before a call of `ask`. */
  readonly silenceMs: number;
  /** Returns whether to wait longer. If this function throws, the stream ends with the error. */
  ask(): Promise<boolean>;
}

/** Yields the items of a source. After each `silenceMs` without an item, `ask` decides whether to wait longer. */
export async function* watched<T>(
  items: AsyncIterator<T>,
  { timers, silenceMs, ask }: Watch,
): AsyncGenerator<T, void, undefined> {
  for (;;) {
    const next = items.next();
    // If the consumer stops before this promise rejects, no rejection is unhandled.
    next.catch(() => {});
    let item = await first(next, timers, silenceMs);
    while (item === "silence") {
      if (!(await ask())) return;
      item = await first(next, timers, silenceMs);
    }
    if (item.done === true) return;
    yield item.value;
  }
}

async function first<T>(next: Promise<T>, timers: Timers, ms: number): Promise<T | "silence"> {
  let cancel = () => {};
  const silence = new Promise<"silence">((resolve) => {
    cancel = timers.after(ms, () => resolve("silence"));
  });
  try {
    return await Promise.race([next, silence]);
  } finally {
    cancel();
  }
}
