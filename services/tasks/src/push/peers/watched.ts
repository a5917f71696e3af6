import type { Timers } from "@depute/core";

/** The check of a source that sends no items for a long time. */
export interface Watch {
  readonly timers: Timers;
  /** Milliseconds of silence after which `ask` is called. */
  readonly silenceMs: number;
  /** Returns whether to wait longer. An error ends the stream. */
  ask(): Promise<boolean>;
}

/** Yields the items of a source. After each `silenceMs` without an item, `ask` decides whether to wait longer. */
export async function* watched<T>(
  items: AsyncIterator<T>,
  { timers, silenceMs, ask }: Watch,
): AsyncGenerator<T, void, undefined> {
  for (;;) {
    const next = items.next();
    // Prevents an unhandled rejection if the consumer stops reading before this item fails.
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
