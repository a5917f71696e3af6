/**
 * The open parts of a service, such as stores. When the service ends or its start fails, they are closed, the newest
 * part first.
 */
export class OpenParts {
  readonly #closes: (() => unknown)[] = [];
  readonly #onError: (error: unknown) => void;

  /** @param onError receives the error of a part that fails to close; the other parts are closed nevertheless */
  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
  }

  /** Adds the function that closes a part. The part is open, or may remain open if its start fails. */
  add(close: () => unknown): void {
    this.#closes.push(close);
  }

  /** Runs `start`, and returns its result. If `start` fails, closes all parts and throws its error. */
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
