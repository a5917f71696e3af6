/** Resolves when the event loop has served what waited for it. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Milliseconds of a clock that never goes back, for lengths of time alone. */
export function monotonicMs(): number {
  return performance.now();
}
