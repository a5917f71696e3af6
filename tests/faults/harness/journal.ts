import { appendFileSync } from "node:fs";

/**
 * One line of a journal: an answer that the platform gave, or a violation that a client saw at once. The checker reads the
 * journals of all clients.
 */
export type JournalLine = { readonly kind: string } & Readonly<Record<string, unknown>>;

/** A file of JSON lines. Each line is in the file before `add` returns. */
export class Journal {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  add(line: JournalLine): void {
    appendFileSync(this.#path, `${JSON.stringify(line)}\n`);
  }
}
