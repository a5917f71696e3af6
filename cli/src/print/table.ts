import { cut, padded, widthOf } from "./width.ts";

/** A cell of a table: one line of text without control characters, and its color on a terminal. */
export interface Cell {
  readonly text: string;
  readonly color?: "green" | "red" | "yellow" | "cyan" | "gray";
}

/** The layout of a table. */
export interface Layout {
  /** Number of columns of the terminal. If the output goes to a pipe or a file, undefined: no text is cut. */
  readonly columns?: number;
  /** Returns a text with the codes of a color. Returns the text unchanged if the stream does not show colors. */
  readonly paint: (text: string, color: NonNullable<Cell["color"]>) => string;
  /**
   * The column widths of the rows that are already printed; absent before the first row. Later rows of the same table
   * are aligned with them.
   */
  readonly widths?: readonly number[];
  readonly header: boolean;
}

const GAP = 2;
/** Minimum width of a column. If a row with columns of this width is too wide, each value gets its own line. */
const NARROWEST = 6;

/** Lays out a table with one line for each row. If the terminal is too narrow, each value gets its own line. */
export function layTable(
  headings: readonly string[],
  rows: readonly (readonly Cell[])[],
  layout: Layout,
): { lines: string[]; widths: number[] } {
  const columnWidths = headings.map((heading, index) =>
    Math.max(
      widthOf(heading),
      layout.widths?.[index] ?? 0,
      ...rows.map((row) => widthOf(row[index]?.text ?? "")),
    ),
  );
  const widths = fitted(columnWidths, layout.columns);
  if (widths === undefined) return { lines: blocks(headings, rows, layout), widths: columnWidths };
  const line = (cells: readonly Cell[], heading: boolean) =>
    cells
      .map((cell, index) => {
        const width = widths[index] ?? 0;
        const text = cut(cell.text, width);
        const full = index === cells.length - 1 ? text : padded(text, width);
        return cell.color === undefined || heading ? full : layout.paint(full, cell.color);
      })
      .join(" ".repeat(GAP))
      .trimEnd();
  const header = layout.header
    ? [
        line(
          headings.map((text) => ({ text })),
          true,
        ),
      ]
    : [];
  return { lines: [...header, ...rows.map((row) => line(row, false))], widths };
}

/**
 * Narrows the widest columns until a row fits into the line.
 *
 * @returns undefined if a row cannot fit
 */
function fitted(widths: readonly number[], columns: number | undefined): number[] | undefined {
  const result = [...widths];
  if (columns === undefined) return result;
  let over = result.reduce((sum, width) => sum + width + GAP, -GAP) - columns;
  while (over > 0) {
    const widest = result.indexOf(Math.max(...result));
    const width = result[widest] ?? 0;
    if (width <= NARROWEST) return undefined;
    const second = Math.max(NARROWEST, ...result.filter((_, index) => index !== widest));
    const step = Math.min(over, Math.max(1, width - second), width - NARROWEST);
    result[widest] = width - step;
    over -= step;
  }
  return result;
}

function blocks(headings: readonly string[], rows: readonly (readonly Cell[])[], layout: Layout): string[] {
  const columns = Math.max(layout.columns ?? 0, NARROWEST);
  return rows.flatMap((row, index) => [
    ...(index === 0 && layout.header ? [] : [""]),
    ...row.flatMap(({ text, color }, at) => {
      const line = cut(`${headings[at]}: ${text}`, columns);
      return text === "" ? [] : [color === undefined ? line : layout.paint(line, color)];
    }),
  ]);
}
