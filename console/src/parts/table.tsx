// biome-ignore-all lint/a11y/useFocusableInteractive: rows of a table that is only read take no focus; their links do
// biome-ignore-all lint/a11y/useSemanticElements: rows of a table element cannot be placed, and only the rows in view exist
import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useRef } from "react";

export interface Column<Row> {
  readonly title: string;
  /** The column's share of the table's width, relative to the other columns. */
  readonly grow: number;
  /** Whether the column is shown only on wide screens, and not on the screen of a phone. */
  readonly isWide?: boolean;
  readonly align?: "end";
  readonly cell: (row: Row) => ReactNode;
}

interface TableProps<Row> {
  readonly label: string;
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  readonly columns: readonly Column<Row>[];
  /** Called when the last rows come into view, if `hasMore` is true. */
  readonly onEnd?: () => void;
  /** Whether there are more rows to read. */
  readonly hasMore?: boolean;
}

const ROW_PX = 44;

/** A table for any number of rows. The DOM contains only the rows in view and some rows around them. */
export function Table<Row>({ label, rows, keyOf, columns, onEnd, hasMore = false }: TableProps<Row>) {
  const scroll = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroll.current,
    estimateSize: () => ROW_PX,
    overscan: 12,
    getItemKey: (index) => keyOf(rows[index] as Row),
  });
  const shownRows = virtual.getVirtualItems();
  const last = shownRows.at(-1)?.index ?? 0;
  useEffect(() => {
    if (hasMore && last >= rows.length - 20) onEnd?.();
  }, [hasMore, last, rows.length, onEnd]);
  return (
    <div
      className="table"
      role="table"
      aria-label={label}
      aria-rowcount={hasMore ? -1 : rows.length + 1}
      aria-colcount={columns.length}
    >
      <div role="rowgroup" className="table-head">
        <div role="row" aria-rowindex={1} className="table-row">
          {columns.map((column) => (
            <div
              key={column.title}
              role="columnheader"
              className={cellClass(column)}
              style={{ flexGrow: column.grow }}
            >
              {column.title}
            </div>
          ))}
        </div>
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to be reachable by keyboard */}
      <div ref={scroll} role="rowgroup" className="table-body" tabIndex={0} aria-label={`${label}, rows`}>
        <div role="presentation" className="table-space" style={{ height: virtual.getTotalSize() }}>
          {shownRows.map((item) => {
            const row = rows[item.index] as Row;
            return (
              <div
                key={item.key}
                role="row"
                aria-rowindex={item.index + 2}
                className="table-row"
                style={{ transform: `translateY(${item.start}px)` }}
              >
                {columns.map((column) => (
                  <div
                    key={column.title}
                    role="cell"
                    className={cellClass(column)}
                    style={{ flexGrow: column.grow }}
                  >
                    {column.cell(row)}
                  </div>
                ))}
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}

function cellClass<Row>({ isWide, align }: Column<Row>): string {
  return `cell${isWide === true ? " wide" : ""}${align === "end" ? " end" : ""}`;
}
