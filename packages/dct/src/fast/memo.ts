/**
 * A cache of a pure function's recent results for short texts. It has at most `2 * size` entries in two halves. A hit
 * in the older half copies the entry to the newer half. When the newer half is full, it replaces the older half.
 * Caches of keys, patterns and proof headers save 3 % of the server's CPU time of VerifyToken with a new token, which is
 * within the noise (`npm run bench -- parts`). Without a server, they save more (`npm run bench -- dct`).
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

/**
 * Returns a copy of a text. The copy shares no memory with the original. A slice of a long text would keep the whole
 * text in memory.
 */
export function detached(text: string): string {
  const copy = ` ${text}`;
  // When a character is read, V8 joins the two parts into one text. The result is a slice of that text.
  copy.charCodeAt(1);
  return copy.slice(1);
}
