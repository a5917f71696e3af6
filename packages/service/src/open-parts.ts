/** The open parts of a service. The service's end and a failed start both close the parts, the newest part first. */
export class OpenParts {
  readonly #closes: (() => unknown)[] = [];
  readonly #onError: (error: unknown) => void;

  /** @param onError receives the error of a part that fails to close; the other parts are closed nevertheless */
  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
  }

  /** Adds a part that is open, or that may be open after its start has failed. */
  add(close: () => unknown): void {
    this.#closes.push(close);
  }

  /** Returns the result of a start. If the start fails, closes all parts and throws the error of the start. */
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
