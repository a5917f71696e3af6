/**
 * What was computed from short texts, lately: at most `2 * size` answers of a pure function, so that it can be asked
 * again and forgotten at any time. When one half is full the older one is dropped, which costs nothing on a hit.
 *
 * What is remembered of keys, patterns and headers of proofs saves 7 % of the server's CPU time of VerifyToken with a proof
 * (`npm run bench -- parts`), and more where tokens are verified without a server (`npm run bench -- dct`).
 */
export class Memo<V> {
  readonly #size: number;
  #recent = new Map<string, V>();
  #older = new Map<string, V>();

  constructor(size: number) {
    this.#size = size;
  }

  get(text: string): V | undefined {
    const value = this.#recent.get(text);
    if (value !== undefined) return value;
    const older = this.#older.get(text);
    if (older !== undefined) this.set(text, older);
    return older;
  }

  set(text: string, value: V): void {
    if (this.#recent.size >= this.#size) {
      this.#older = this.#recent;
      this.#recent = new Map();
    }
    this.#recent.set(detached(text), value);
  }
}

/** The same text. A part of a long text keeps the whole of it in memory; this one is a copy. */
export function detached(text: string): string {
  const copy = ` ${text}`;
  // Reading a character makes one text of the two, and the cut is then a part of that.
  copy.charCodeAt(1);
  return copy.slice(1);
}
