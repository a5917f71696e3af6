const [QUOTE, BACKSLASH, OPEN, CLOSE, OPEN_LIST, CLOSE_LIST, COLON, COMMA] = new TextEncoder().encode(
  '"\\{}[]:,',
);
const utf8 = new TextDecoder();
/** Bytes of a name or an id that are kept; longer ones are none that this side sent. */
const MAX_KEPT = 128;

/**
 * Finds `id` and `method` of a JSON-RPC message that is too large to be held, from its bytes as they pass. Of members of the
 * same name the last counts, as in JSON.parse.
 */
export class TopMembers {
  #depth = 0;
  #inString = false;
  #isEscaped = false;
  /** Whether the next string of the outermost object is a member's name. */
  #isName = false;
  #name = "";
  #kept: number[] | undefined;
  #id: string | number | undefined;
  #hasMethod = false;

  /** The message's id; undefined where it has none. */
  get id(): string | number | undefined {
    return this.#id;
  }

  /** Whether it is a request or notification rather than a response. */
  get hasMethod(): boolean {
    return this.#hasMethod;
  }

  /** @param bytes the next of the message, without the line break that ends it */
  feed(bytes: Uint8Array): void {
    let backslash = -1;
    for (let at = 0; at < bytes.length; at++) {
      if (!this.#inString) this.#structure(bytes[at] as number);
      else if (this.#kept !== undefined || this.#isEscaped) this.#string(bytes[at] as number);
      else {
        // Most of what is too large is text, of which nothing is kept.
        if (backslash < at) backslash = placeOf(BACKSLASH, bytes, at);
        at = Math.min(placeOf(QUOTE, bytes, at), backslash);
        if (at < bytes.length) this.#string(bytes[at] as number);
      }
    }
  }

  #string(byte: number): void {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (byte === BACKSLASH) this.#isEscaped = true;
    else if (byte === QUOTE) {
      this.#inString = false;
      this.#keep(byte);
      if (this.#depth === 1) this.#textEnds();
      return;
    }
    this.#keep(byte);
  }

  #structure(byte: number): void {
    switch (byte) {
      case QUOTE:
        this.#inString = true;
        if (this.#depth === 1 && (this.#isName || this.#name === "id")) this.#kept = [byte];
        return;
      case OPEN:
      case OPEN_LIST:
        this.#depth++;
        // An id is a text or a number: the texts within a list or an object are none.
        this.#kept = undefined;
        this.#isName = this.#depth === 1;
        return;
      case CLOSE:
      case CLOSE_LIST:
        if (this.#depth === 1) this.#valueEnds();
        this.#depth--;
        return;
      case COLON:
        if (this.#depth !== 1) return;
        this.#isName = false;
        this.#kept = this.#name === "id" ? [] : undefined;
        return;
      case COMMA:
        if (this.#depth !== 1) return;
        this.#valueEnds();
        this.#isName = true;
        return;
      default:
        if (this.#depth === 1) this.#keep(byte);
    }
  }

  #keep(byte: number): void {
    if (this.#kept === undefined) return;
    this.#kept.push(byte);
    if (this.#kept.length > MAX_KEPT) this.#kept = undefined;
  }

  #textEnds(): void {
    if (!this.#isName) return;
    const name = this.#taken();
    this.#name = typeof name === "string" ? name : "";
    this.#hasMethod ||= this.#name === "method";
  }

  #valueEnds(): void {
    if (this.#isName || this.#name !== "id") return;
    const id = this.#taken();
    this.#id = typeof id === "string" || typeof id === "number" ? id : undefined;
    this.#name = "";
  }

  /** The JSON in what was kept; undefined for none. */
  #taken(): unknown {
    const kept = this.#kept;
    this.#kept = undefined;
    if (kept === undefined) return undefined;
    try {
      return JSON.parse(utf8.decode(Uint8Array.from(kept)));
    } catch {
      return undefined;
    }
  }
}

/** Where a byte is next; behind the end where it is no more. */
function placeOf(byte: number | undefined, bytes: Uint8Array, from: number): number {
  const at = bytes.indexOf(byte as number, from);
  return at < 0 ? bytes.length : at;
}
