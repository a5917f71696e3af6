import { globSync } from "node:fs";
import { join } from "node:path";
import type { Benchmark, Benchmarks } from "./bench.ts";
import { measure } from "./measure.ts";
import { figureResult, figureRow, printTable, timeResults, timeRows } from "./report.ts";
import type { Result } from "./results.ts";

/** Runs the benchmarks of a suite whose names contain `part`, and prints each one's results at once. */
export async function runSuite(suite: string, part: string): Promise<Result[]> {
  const folder = join(import.meta.dirname, suite);
  const results: Result[] = [];
  for (const file of globSync("*.bench.ts", { cwd: folder }).sort()) {
    const { default: benchmarks } = (await import(join(folder, file))) as { default: Benchmarks };
    for (const benchmark of await benchmarks()) {
      if (benchmark.name.includes(part)) results.push(...(await report(suite, benchmark)));
      await benchmark.close?.();
    }
  }
  return results;
}

async function report(suite: string, benchmark: Benchmark): Promise<Result[]> {
  console.log(`\n${benchmark.name}`);
  const of = { suite, benchmark: benchmark.name };
  const measured = await measure(benchmark);
  printTable(timeRows(measured));
  const results: Result[] = timeResults(measured).map((result) => ({ ...of, ...result }));
  const rows = [];
  for (const figure of benchmark.figures ?? []) {
    const value = await figure.measure();
    rows.push(figureRow(figure, value));
    results.push({ ...of, ...figureResult(figure, value) });
  }
  printTable(rows);
  return results;
}
