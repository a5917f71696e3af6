import { drawCharts } from "../plots/line-charts.ts";
import type { Minute } from "./minute.ts";

const MB = 1e6;

/** Draws a run as an SVG document, one point for each minute. */
export function pictureOf(run: readonly Minute[]): string {
  const line = (label: string, read: (minute: Minute) => number) => ({ label, values: run.map(read) });
  return drawCharts({
    title: "1,000 streams, 200 workers, 50 tasks a second",
    xLabel: "minute",
    xs: run.map(({ minute }) => minute),
    charts: [
      {
        title: "Memory",
        unit: "MB",
        lines: [
          line("resident", ({ rssBytes }) => rssBytes / MB),
          line("heap after collection", ({ heapBytes }) => heapBytes / MB),
        ],
      },
      { title: "Files of the stores", unit: "MB", lines: [line("", ({ storeBytes }) => storeBytes / MB)] },
      { title: "Descriptors", unit: "open files", lines: [line("", ({ descriptors }) => descriptors)] },
      {
        title: "From creation to completion",
        unit: "ms",
        lines: [
          line("p99", ({ createToComplete }) => createToComplete.p99Ms),
          line("p50", ({ createToComplete }) => createToComplete.p50Ms),
        ],
      },
      {
        title: "From report to watcher",
        unit: "ms",
        lines: [line("p99", ({ events }) => events.p99Ms), line("p50", ({ events }) => events.p50Ms)],
      },
    ],
  });
}
