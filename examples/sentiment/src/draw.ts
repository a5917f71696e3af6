/** Where the story is told: a terminal, a test. */
export interface Screen {
  /** A line that stays. */
  say(line: string): void;
  /** A line that the next one of its kind replaces. */
  show(line: string): void;
}

/** A terminal redraws the moving line; a file or pipe gets each of them. */
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

/** A bar of how much is done. */
export function bar(processed: number, total: number, message: string): string {
  const filled = total === 0 ? 0 : Math.round((processed / total) * WIDTH);
  return `  [${"#".repeat(filled)}${"-".repeat(WIDTH - filled)}] ${processed}/${total}  ${message}`;
}
