const [QUOTE, BACKSLASH, OPEN, CLOSE, OPEN_LIST, CLOSE_LIST, COLON, COMMA] = new TextEncoder().encode(
  '"\\{}[]:,',
);
const utf8 = new TextDecoder();
/**
 * Maximum number of stored bytes of a name or an id. A longer id belongs to no request of the proxy, whose ids are
 * shorter.
 */
const MAX_KEPT = 128;

/**
 * Finds `id` and `method` of a JSON-RPC message that is too large to hold in memory. The class reads the message in
 * pieces. If a name occurs several times the last member counts, as in JSON.parse.
 */
export class TopMembers {
  #depth = 0;
  #inString = false;
  #isEscaped = false;
  /** Whether the next string of the top-level object is the name of a member. */
  #isName = false;
  #name = "";
  #idBytes: number[] | undefined;
  #id: string | number | undefined;
  #hasMethod = false;

  /** The id of the message; undefined if it has none. */
  get id(): string | number | undefined {
    return this.#id;
  }

  /** Whether the message has a `method`: it is then a request or a notification, and not a response. */
  get hasMethod(): boolean {
    return this.#hasMethod;
  }

  /** @param bytes the next bytes of the message, without the line break at its end */
  feed(bytes: Uint8Array): void {
    let backslash = -1;
    for (let at = 0; at < bytes.length; at++) {
      if (!this.#inString) this.#structure(bytes[at] as number);
      else if (this.#idBytes !== undefined || this.#isEscaped) this.#string(bytes[at] as number);
      else {
        // Searches for backslashes in large steps, because most of an oversized message is text that this class does
        // not store.
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
        if (this.#depth === 1 && (this.#isName || this.#name === "id")) this.#idBytes = [byte];
        return;
      case OPEN:
      case OPEN_LIST:
        this.#depth++;
        // An id is a text or a number, so texts within lists or objects are not stored.
        this.#idBytes = undefined;
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
        this.#idBytes = this.#name === "id" ? [] : undefined;
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
    if (this.#idBytes === undefined) return;
    this.#idBytes.push(byte);
    if (this.#idBytes.length > MAX_KEPT) this.#idBytes = undefined;
  }

  #textEnds(): void {
    if (!this.#isName) return;
    const name = this.#takeId();
    this.#name = typeof name === "string" ? name : "";
    this.#hasMethod ||= this.#name === "method";
  }

  #valueEnds(): void {
    if (this.#isName || this.#name !== "id") return;
    const id = this.#takeId();
    this.#id = typeof id === "string" || typeof id === "number" ? id : undefined;
    this.#name = "";
  }

  /**
   * Parses and clears the collected JSON text of a member's name or of `id`; returns undefined if the text is missing
   * or is not JSON.
   */
  #takeId(): unknown {
    const idBytes = this.#idBytes;
    this.#idBytes = undefined;
    if (idBytes === undefined) return undefined;
    try {
      return JSON.parse(utf8.decode(Uint8Array.from(idBytes)));
    } catch {
      return undefined;
    }
  }
}

/** Returns the next position of a byte; the number of bytes if the byte does not occur again. */
function placeOf(byte: number | undefined, bytes: Uint8Array, from: number): number {
  const at = bytes.indexOf(byte as number, from);
  return at < 0 ? bytes.length : at;
}
