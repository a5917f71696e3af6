/** Numbers abandoned before the rest moves together. */
const MIN_WASTE = 1 << 16;

/**
 * For each ordinal some numbers from 0 to 2^32-1, one after the other in one array: 4 bytes each, without an object of their
 * own, so that looking at thousands of them waits little for memory and costs the garbage collector nothing.
 */
export class Slices {
  #items = new Uint32Array(1 << 10);
  #starts = new Uint32Array(1 << 8);
  #lengths = new Uint32Array(1 << 8);
  #count = 0;
  #end = 0;
  #waste = 0;

  /** Where the numbers are; to be asked for again after a change. */
  get items(): Uint32Array {
    return this.#items;
  }

  /** The place of an ordinal's first number among `items`. */
  start(ordinal: number): number {
    return this.#starts[ordinal] as number;
  }

  length(ordinal: number): number {
    return this.#lengths[ordinal] as number;
  }

  /** @param ordinal a known one, or the next */
  set(ordinal: number, numbers: readonly number[]): void {
    if (ordinal < this.#count) this.#waste += this.length(ordinal);
    else this.#count = ordinal + 1;
    this.#starts = withRoom(this.#starts, this.#count);
    this.#lengths = withRoom(this.#lengths, this.#count);
    this.#items = withRoom(this.#items, this.#end + numbers.length);
    this.#items.set(numbers, this.#end);
    this.#starts[ordinal] = this.#end;
    this.#lengths[ordinal] = numbers.length;
    this.#end += numbers.length;
    if (this.#waste > MIN_WASTE && this.#waste > this.#end / 2) this.#compact();
  }

  #compact(): void {
    const items = new Uint32Array(this.#end - this.#waste);
    let end = 0;
    for (let ordinal = 0; ordinal < this.#count; ordinal++) {
      const start = this.start(ordinal);
      items.set(this.#items.subarray(start, start + this.length(ordinal)), end);
      this.#starts[ordinal] = end;
      end += this.length(ordinal);
    }
    this.#items = items;
    this.#end = end;
    this.#waste = 0;
  }
}

function withRoom(array: Uint32Array<ArrayBuffer>, length: number): Uint32Array<ArrayBuffer> {
  if (length <= array.length) return array;
  const larger = new Uint32Array(Math.max(length, array.length + (array.length >>> 1)));
  larger.set(array);
  return larger;
}
