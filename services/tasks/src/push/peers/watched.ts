import type { Timers } from "@depute/core";

/** What a silent source is asked. */
export interface Watch {
  readonly timers: Timers;
  /** Milliseconds of silence after which it is asked. */
  readonly silenceMs: number;
  /** Says whether to go on listening; what it throws ends the stream. */
  ask(): Promise<boolean>;
}

/** Items as they come; a source that is silent for too long is asked whether there is still something to wait for. */
export async function* watched<T>(
  items: AsyncIterator<T>,
  { timers, silenceMs, ask }: Watch,
): AsyncGenerator<T, void, undefined> {
  for (;;) {
    const next = items.next();
    // Who stops listening hears of no failure that comes later.
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
