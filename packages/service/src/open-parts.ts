/**
 * The open parts of a service. Its end and a failed start close the same parts in the same way: the last one that was added
 * first.
 */
export class OpenParts {
  readonly #closes: (() => unknown)[] = [];
  readonly #onError: (error: unknown) => void;

  /** @param onError receives the error of a part whose close fails; the other parts are closed nevertheless */
  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
  }

  /** Adds a part that is open, or that may be open after its start has failed. */
  add(close: () => unknown): void {
    this.#closes.push(close);
  }

  /** Returns the result of a start. Closes all parts if the start fails, and throws its error. */
  async orClose<T>(start: () => Promise<T>): Promise<T> {
    try {
      return await start();
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  /** Closes all parts. The promise never rejects. */
  async close(): Promise<void> {
    for (let close = this.#closes.pop(); close !== undefined; close = this.#closes.pop()) {
      try {
        await close();
      } catch (error) {
        this.#onError(error);
      }
    }
  }
}
