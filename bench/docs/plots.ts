import { drawCharts } from "../plots/line-charts.ts";
import type { Figures } from "./figures.ts";

/** The suite whose results have sizes. */
const GROWTH = "growth";

/** Returns the file name of a path's plot. */
export const plotOf = (path: string): string => `${path.replaceAll(" ", "-")}.svg`;

/** Returns the plots of the suite growth by file name: one for each path, with a chart for each line. */
export function growthPlots(figures: Figures): Map<string, string> {
  const results = figures[GROWTH]?.results ?? [];
  const plots = new Map<string, string>();
  for (const path of new Set(results.map(({ benchmark }) => benchmark))) {
    const points = results.filter(({ benchmark, at }) => benchmark === path && at !== undefined);
    const xs = [...new Set(points.map(({ at = 0 }) => at))].sort((a, b) => a - b);
    const names = [...new Set(points.map(({ name }) => name))];
    const charts = names.map((name) => {
      const ofLine = points.filter((point) => point.name === name);
      const values = xs.map((x) => ofLine.find(({ at }) => at === x)?.value ?? Number.NaN);
      return { title: name, unit: ofLine[0]?.unit ?? "", lines: [{ label: "", values }] };
    });
    plots.set(plotOf(path), drawCharts({ title: `By ${path}`, xLabel: path, xs, xScale: "log", charts }));
  }
  return plots;
}
