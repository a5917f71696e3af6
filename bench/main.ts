/** `npm run bench -- <suite> [part of a name]`: runs the benchmarks of bench/<suite> and prints the results. */
import { existsSync, globSync } from "node:fs";
import { basename, join } from "node:path";
import type { Benchmark, Benchmarks } from "./bench.ts";
import { measure } from "./measure.ts";
import { figureRow, printTable, timeRows } from "./report.ts";

const [suite = "", part = ""] = process.argv.slice(2);
const folder = join(import.meta.dirname, suite);

if (!/^[a-z0-9-]+$/.test(suite) || !existsSync(folder)) {
  const suites = globSync("*/", { cwd: import.meta.dirname }).map((path) => basename(path));
  console.error(`usage: npm run bench -- <suite> [part of a name]; suites: ${suites.join(", ")}`);
  process.exit(2);
}

for (const file of globSync("*.bench.ts", { cwd: folder }).sort()) {
  const { default: benchmarks } = (await import(join(folder, file))) as { default: Benchmarks };
  for (const benchmark of await benchmarks()) {
    if (benchmark.name.includes(part)) await report(benchmark);
    await benchmark.close?.();
  }
}

async function report(benchmark: Benchmark): Promise<void> {
  console.log(`\n${benchmark.name}`);
  printTable(timeRows(await measure(benchmark)));
  const figures = [];
  for (const figure of benchmark.figures ?? []) figures.push(figureRow(figure, await figure.measure()));
  printTable(figures);
}
