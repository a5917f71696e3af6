import { oneLine } from "../print/safe-text.ts";
import { cut, widthOf } from "../print/width.ts";

/** The width of the bar in columns of the terminal: at most WIDEST. With less room than NARROWEST, no bar is drawn. */
const WIDEST = 30;
const NARROWEST = 8;

/**
 * Returns a progress bar as one line of text.
 *
 * @param columns the width of the terminal
 */
export function barLine({ status, processed, total, message }: Progress, columns: number): string {
  const share = total > 0 ? Math.min(1, processed / total) : 0;
  const count = total > 0 ? ` ${Math.floor(share * 100)}% ${processed}/${total}` : "";
  const label = `${status}${count}`;
  const bar = Math.min(WIDEST, columns - widthOf(label) - 4);
  const filled = Math.round(share * bar);
  const drawn = bar < NARROWEST ? "" : `[${"#".repeat(filled)}${"-".repeat(bar - filled)}] `;
  // The line leaves the last column of the terminal empty, because some terminals would wrap a line that fills it.
  return cut(`${drawn}${label}${message === "" ? "" : ` ${oneLine(message)}`}`, Math.max(1, columns - 1));
}

/** The progress of a task that a progress bar shows. */
export interface Progress {
  readonly status: string;
  readonly processed: number;
  readonly total: number;
  readonly message: string;
}

/**
 * Draws a progress bar in one line of a terminal, and redraws that line at each change. Writes nothing if the stream is
 * not a terminal.
 */
export class ProgressBar {
  readonly #stream: NodeJS.WriteStream;
  #isDrawn = false;

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream;
  }

  draw(progress: Progress): void {
    if (!this.#stream.isTTY) return;
    this.#stream.write(`\r\u001b[K${barLine(progress, this.#stream.columns || 80)}`);
    this.#isDrawn = true;
  }

  /** Removes the progress line from the terminal. */
  clear(): void {
    if (this.#isDrawn) this.#stream.write("\r\u001b[K");
    this.#isDrawn = false;
  }
}
