/** Thrown for what is left to others; see quick-encode.ts. It carries nothing, so that one is enough. */
export const UNUSUAL = new Error("not for the quick way");

/** Longer messages are left to others. */
const MAX_BYTES = 32_768;
/** Up to so many characters a text is written by hand; more are worth a call of Node's. */
const MAX_BY_HAND = 48;
/** The most bytes of a varint that a number holds exactly. */
const MAX_VARINT = 8;

/** Writes protobuf's binary form to one place, again and again. */
export class QuickWriter {
  readonly #bytes = Buffer.alloc(MAX_BYTES);
  #at = 0;

  /** Starts over. */
  begin(): void {
    this.#at = 0;
  }

  /** A copy of what was written. */
  copy(): Uint8Array<ArrayBuffer> {
    const bytes = Buffer.allocUnsafe(this.#at);
    this.#bytes.copy(bytes, 0, 0, this.#at);
    return bytes;
  }

  /**
   * A varint, of an integer from 0 to 2^53 - 1.
   *
   * @throws UNUSUAL, as each of these does where there is no room
   */
  uint(value: number): void {
    this.#assertRoom(MAX_VARINT);
    let rest = value;
    while (rest > 0x7f) {
      this.#bytes[this.#at++] = (rest % 0x80) | 0x80;
      rest = Math.floor(rest / 0x80);
    }
    this.#bytes[this.#at++] = rest;
  }

  /** A text with its length. */
  text(text: string): void {
    const { length } = text;
    if (length > MAX_BY_HAND || !this.#ascii(text, length)) this.#utf8(text, length);
  }

  /** Bytes with their length. */
  data(data: Uint8Array): void {
    this.#assertRoom(MAX_VARINT + data.length);
    this.uint(data.length);
    this.#bytes.set(data, this.#at);
    this.#at += data.length;
  }

  double(value: number): void {
    this.#assertRoom(8);
    this.#at = this.#bytes.writeDoubleLE(value, this.#at);
  }

  /** Leaves room for the length of what is written next; gives where that is. */
  fork(): number {
    this.#assertRoom(1);
    return this.#at++;
  }

  /** Puts the length there. */
  join(start: number): void {
    const end = this.#at;
    const length = end - start - 1;
    const more = varintBytes(length) - 1;
    if (more > 0) {
      this.#assertRoom(more);
      this.#bytes.copyWithin(start + 1 + more, start + 1, end);
    }
    this.#at = start;
    this.uint(length);
    this.#at = end + more;
  }

  /** False, with nothing written, for a text beyond ASCII. */
  #ascii(text: string, length: number): boolean {
    this.#assertRoom(1 + length);
    const bytes = this.#bytes;
    let at = this.#at;
    bytes[at++] = length;
    for (let i = 0; i < length; i++) {
      const code = text.charCodeAt(i);
      if (code > 0x7f) return false;
      bytes[at++] = code;
    }
    this.#at = at;
    return true;
  }

  #utf8(text: string, length: number): void {
    // No character takes more than three bytes.
    this.#assertRoom(length * 3 + MAX_VARINT);
    const prefix = varintBytes(length);
    const written = this.#bytes.write(text, this.#at + prefix);
    if (varintBytes(written) !== prefix) throw UNUSUAL;
    this.uint(written);
    this.#at += written;
  }

  #assertRoom(bytes: number): void {
    if (this.#at + bytes > MAX_BYTES) throw UNUSUAL;
  }
}

/** How many bytes the varint of a length has. */
function varintBytes(length: number): number {
  return length < 0x80 ? 1 : length < 0x4000 ? 2 : 3;
}
