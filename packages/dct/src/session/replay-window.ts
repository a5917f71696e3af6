import { SESSION_WINDOW } from "../limits.ts";

const BITS = 32;

/**
 * Records the used numbers of a rising counter (as in RFC 4303 3.4.3): the highest used number, and the used
 * numbers among the 1,023 below it. Each number can be used once. A number below this window is refused,
 * because the window no longer records whether it was used.
 */
export class ReplayWindow {
  readonly #used = new Uint32Array(SESSION_WINDOW / BITS);
  #highest = 0;

  /** Whether a number may still be used: it is unused, and not below the window. Numbers are integers from 1. */
  isFresh(number: number): boolean {
    if (!Number.isSafeInteger(number) || number < 1) return false;
    if (number > this.#highest) return true;
    return this.#highest - number < SESSION_WINDOW && !this.#isUsed(number);
  }

  /** Consumes a number. Returns false if the number was used or is below the window. */
  use(number: number): boolean {
    if (!this.isFresh(number)) return false;
    if (number > this.#highest) this.#advance(number);
    const [word, bit] = place(number);
    this.#used[word] = (this.#used[word] as number) | bit;
    return true;
  }

  #isUsed(number: number): boolean {
    const [word, bit] = place(number);
    return ((this.#used[word] as number) & bit) !== 0;
  }

  /**
   * Moves the window up to a new highest number. Clears the bits of the numbers that enter the window, because
   * numbers that left the window used the same bits.
   */
  #advance(number: number): void {
    if (number - this.#highest >= SESSION_WINDOW) this.#used.fill(0);
    else {
      for (let next = this.#highest + 1; next <= number; next++) {
        const [word, bit] = place(next);
        this.#used[word] = (this.#used[word] as number) & ~bit;
      }
    }
    this.#highest = number;
  }
}

function place(number: number): [word: number, bit: number] {
  const at = number % SESSION_WINDOW;
  return [Math.floor(at / BITS), 1 << (at % BITS)];
}
