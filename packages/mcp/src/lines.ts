import { TopMembers } from "./rules/top-members.ts";

const LINE_FEED = 10;

export interface LinesOptions {
  /**
   * Maximum length in bytes of a line that is kept in memory. From a longer line, the parser reads only the top-level
   * JSON members.
   */
  readonly maxBytes: number;
  readonly onLine: (line: string) => void;
  readonly onOversize: (members: TopMembers) => void;
  /** Maximum length of a line in bytes. `onEndless` is called if a line is longer. */
  readonly endlessBytes: number;
  readonly onEndless: () => void;
}

/** Splits a stream of bytes into lines. Lines above the size limit are not held in memory. */
export class Lines {
  readonly #options: LinesOptions;
  #held: Uint8Array[] = [];
  #bytes = 0;
  #members: TopMembers | undefined;

  constructor(options: LinesOptions) {
    this.#options = options;
  }

  feed(chunk: Uint8Array): void {
    let rest = chunk;
    for (let end = rest.indexOf(LINE_FEED); end >= 0; end = rest.indexOf(LINE_FEED)) {
      this.#take(rest.subarray(0, end));
      this.#end();
      rest = rest.subarray(end + 1);
    }
    this.#take(rest);
  }

  #take(part: Uint8Array): void {
    const { maxBytes, endlessBytes, onEndless } = this.#options;
    if (part.length === 0) return;
    const wasEndless = this.#bytes > endlessBytes;
    this.#bytes += part.length;
    if (this.#bytes > endlessBytes) {
      if (!wasEndless) onEndless();
      return;
    }
    if (this.#members === undefined && this.#bytes > maxBytes) {
      this.#members = new TopMembers();
      for (const held of this.#held.splice(0)) this.#members.feed(held);
    }
    if (this.#members === undefined) this.#held.push(part);
    else this.#members.feed(part);
  }

  #end(): void {
    const { onLine, onOversize } = this.#options;
    const held = this.#held.splice(0);
    const members = this.#members;
    this.#members = undefined;
    this.#bytes = 0;
    if (members !== undefined) onOversize(members);
    else if (held.length > 0) onLine(Buffer.concat(held).toString("utf8").replace(/\r$/, ""));
  }
}
