import { styleText } from "node:util";
import type { Cell, Layout } from "./table.ts";

/**
 * Whether a stream shows colors: the stream is a terminal, TERM is not `dumb`, and NO_COLOR is unset or empty
 * (no-color.org).
 */
export function hasColors(stream: NodeJS.WriteStream): boolean {
  const { NO_COLOR = "", TERM } = process.env;
  return stream.isTTY === true && NO_COLOR === "" && TERM !== "dumb";
}

/** Returns the layout for a stream. In a terminal, text is cut and colored; otherwise it is whole and plain. */
export function layoutFor(stream: NodeJS.WriteStream): Omit<Layout, "header" | "widths"> {
  return {
    ...(stream.isTTY && { columns: Math.max(stream.columns || 80, 1) }),
    paint: hasColors(stream) ? paint : (text) => text,
  };
}

function paint(text: string, color: NonNullable<Cell["color"]>): string {
  return styleText(color, text, { validateStream: false });
}
