import { readFileSync, writeFileSync } from "node:fs";
import type { Result } from "../results.ts";
import { mergeFigures, readFigures, type SuiteFigures, saveFigures } from "./figures.ts";
import { GOALS } from "./goals.ts";
import { renderPage } from "./page.ts";
import { growthPlots } from "./plots.ts";

const DOCS = new URL("../../docs/", import.meta.url);

/** Writes the results of a run into docs/performance.md, its figures and its plots. */
export function writeDocs(results: readonly Result[], when: Omit<SuiteFigures, "results">): void {
  const figures = mergeFigures(readFigures(), results, when);
  saveFigures(figures);
  const page = new URL("performance.md", DOCS);
  writeFileSync(page, renderPage(readFileSync(page, "utf8"), figures, GOALS));
  for (const [name, plot] of growthPlots(figures)) {
    writeFileSync(new URL(`performance/${name}`, DOCS), plot);
  }
}
