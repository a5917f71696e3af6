/** Counts work in progress. */
export class RunningCount {
  #running = 0;
  #onIdle: (() => void)[] = [];

  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#running++;
    try {
      return await work();
    } finally {
      this.#running--;
      if (this.#running === 0) for (const done of this.#onIdle.splice(0)) done();
    }
  }

  /** Resolves when no work is in progress. */
  idle(): Promise<void> {
    if (this.#running === 0) return Promise.resolve();
    return new Promise((resolve) => this.#onIdle.push(resolve));
  }
}
