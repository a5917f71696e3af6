import type { Timers } from "@depute/core";

type Outcome<T> = { readonly got: IteratorResult<T> } | { readonly thrown: unknown };

/**
 * Returns the items of a source, and `undefined` after each period of silence. A heartbeat does not start a new read,
 * so only one read of the source is open at a time.
 *
 * @param everyMs milliseconds of silence; 0 for no heartbeats
 */
export function withHeartbeats<T>(
  source: AsyncIterator<T>,
  everyMs: number,
  timers: Timers,
): AsyncIterable<T | undefined> {
  return { [Symbol.asyncIterator]: () => new Beating(source, everyMs, timers) };
}

class Beating<T> implements AsyncIterator<T | undefined> {
  readonly #source: AsyncIterator<T>;
  readonly #everyMs: number;
  readonly #timers: Timers;
  #isAsked = false;
  /** The item or error that arrived while no reader waited; undefined for none. */
  #come: Outcome<T> | undefined;
  /** Resolves the waiting reader. */
  #settle: ((outcome: Outcome<T | undefined>) => void) | undefined;

  constructor(source: AsyncIterator<T>, everyMs: number, timers: Timers) {
    this.#source = source;
    this.#everyMs = everyMs;
    this.#timers = timers;
  }

  next(): Promise<IteratorResult<T | undefined>> {
    const { promise, resolve, reject } = Promise.withResolvers<IteratorResult<T | undefined>>();
    let cancel = () => {};
    this.#settle = (outcome) => {
      this.#settle = undefined;
      cancel();
      if ("got" in outcome) resolve(outcome.got);
      else reject(outcome.thrown);
    };
    if (this.#everyMs > 0) {
      cancel = this.#timers.after(this.#everyMs, () => {
        this.#settle?.({ got: { done: false, value: undefined } });
      });
    }
    this.#ask();
    return promise;
  }

  async return(): Promise<IteratorResult<T | undefined>> {
    this.#settle?.({ got: { done: true, value: undefined } });
    await this.#source.return?.();
    return { done: true, value: undefined };
  }

  #ask(): void {
    const come = this.#come;
    if (come !== undefined) {
      this.#come = undefined;
      this.#isAsked = false;
      this.#settle?.(come);
      return;
    }
    if (this.#isAsked) return;
    this.#isAsked = true;
    this.#source.next().then(
      (assignment) => this.#take({ got: assignment }),
      (thrown: unknown) => this.#take({ thrown }),
    );
  }

  #take(outcome: Outcome<T>): void {
    if (this.#settle === undefined) {
      this.#come = outcome;
      return;
    }
    this.#isAsked = false;
    this.#settle(outcome);
  }
}
