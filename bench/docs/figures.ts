import { readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg, platform } from "node:os";
import { PART } from "../amount.ts";
import type { Result } from "../results.ts";

/** The last results of each suite, as docs/performance/figures.json keeps them. */
export type Figures = Readonly<Record<string, SuiteFigures>>;

export interface SuiteFigures {
  /** The day of the run, as YYYY-MM-DD. */
  readonly day: string;
  readonly machine: string;
  /** The number of processes that wanted a processor when the run began: the load of the last minute. */
  readonly load: number;
  /** The divisor of amounts: 1 in a whole run. */
  readonly part: number;
  readonly results: readonly Omit<Result, "suite">[];
}

const FILE = new URL("../../docs/performance/figures.json", import.meta.url);

export function readFigures(): Figures {
  return JSON.parse(readFileSync(FILE, "utf8")) as Figures;
}

export function saveFigures(figures: Figures): void {
  writeFileSync(FILE, `${JSON.stringify(figures, undefined, 2)}\n`);
}

/** Describes this machine and its load. Call it before a run. */
export function circumstances(): Omit<SuiteFigures, "results"> {
  const [first, ...more] = cpus();
  return {
    day: new Date().toISOString().slice(0, 10),
    machine: `${more.length + 1} × ${first?.model ?? "unknown"}, ${platform()}, Node.js ${process.versions.node}`,
    load: Math.round((loadavg()[0] ?? 0) * 10) / 10,
    part: PART,
  };
}

/**
 * Returns the figures with the results of a run, sorted by suite. A result replaces the earlier results of its
 * benchmark; other benchmarks of the suite keep theirs. If such results remain, the suite has the higher load and the higher divisor of
 * both runs.
 */
export function mergeFigures(
  figures: Figures,
  results: readonly Result[],
  when: Omit<SuiteFigures, "results">,
): Figures {
  const merged: Record<string, SuiteFigures> = { ...figures };
  for (const suite of new Set(results.map((result) => result.suite))) {
    const own = results.filter((result) => result.suite === suite);
    const isNew = new Set(own.map(({ benchmark }) => benchmark));
    const kept = (figures[suite]?.results ?? []).filter(({ benchmark }) => !isNew.has(benchmark));
    const before = kept.length > 0 ? figures[suite] : undefined;
    merged[suite] = {
      ...when,
      load: Math.max(when.load, before?.load ?? 0),
      part: Math.max(when.part, before?.part ?? 1),
      results: [...kept, ...own.map(({ suite: _, ...result }) => rounded(result))],
    };
  }
  return Object.fromEntries(Object.entries(merged).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Rounds to four digits, because the others are noise. */
function rounded<R extends Omit<Result, "suite">>(result: R): R {
  const round = (value: number) => Number(value.toPrecision(4));
  return {
    ...result,
    value: round(result.value),
    ...(result.spread !== undefined && { spread: round(result.spread) }),
    ...(result.ratio !== undefined && { ratio: round(result.ratio) }),
  };
}
