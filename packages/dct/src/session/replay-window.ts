import { SESSION_WINDOW } from "../limits.ts";

const BITS = 32;

/**
 * Which numbers of a rising count were used (as RFC 4303 3.4.3 has it): the highest one, and which of the 1,023 below
 * it. A number is used once; one that lies further back is refused, used or not, since nobody remembers.
 */
export class ReplayWindow {
  readonly #used = new Uint32Array(SESSION_WINDOW / BITS);
  #highest = 0;

  /** Whether a number could be used. Numbers are integers from 1. */
  isFresh(number: number): boolean {
    if (!Number.isSafeInteger(number) || number < 1) return false;
    if (number > this.#highest) return true;
    return this.#highest - number < SESSION_WINDOW && !this.#isUsed(number);
  }

  /** Uses a number up; false when it could not be used. */
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

  /** The places of the numbers that come into view belonged to ones that now leave it. */
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
