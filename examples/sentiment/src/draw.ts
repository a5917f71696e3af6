/** The output for progress: a terminal or, in tests, a list of lines. */
export interface Screen {
  /** Prints a line that stays. */
  say(line: string): void;
  /** Prints a line. On a terminal, the next call of `show` replaces the line. */
  show(line: string): void;
}

/** Writes to a terminal, which redraws the moving line. A file or pipe gets every line. */
export function terminal(out: NodeJS.WriteStream): Screen {
  let moving = false;
  return {
    say(line) {
      out.write(`${moving && out.isTTY ? "\n" : ""}${line}\n`);
      moving = false;
    },
    show(line) {
      out.write(out.isTTY ? `\r\u001b[2K${line}` : `${line}\n`);
      moving = true;
    },
  };
}

const WIDTH = 30;

/** Draws a bar that shows the share of the work that is done. */
export function bar(processed: number, total: number, message: string): string {
  const filled = total === 0 ? 0 : Math.round((processed / total) * WIDTH);
  return `  [${"#".repeat(filled)}${"-".repeat(WIDTH - filled)}] ${processed}/${total}  ${message}`;
}
