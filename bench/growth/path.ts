import { isQuick, PART } from "../amount.ts";
import type { Benchmark, Figure, Value } from "../bench.ts";
import { inFlight } from "../in-flight.ts";
import { middleOf } from "../turns.ts";

/** A measured cost, while something that the cost may depend on grows. */
export interface Path {
  /** What grows, in the plural. It names the benchmark and the axis of the plot. */
  readonly name: string;
  readonly unit: string;
  /** The sizes in ascending order. */
  readonly sizes: readonly number[];
  /** The measured operations, the lines of the plot. */
  readonly lines: readonly string[];
  readonly open: () => Promise<OpenPath>;
  /** Requirements on the growth of a line between two sizes. */
  readonly flat?: readonly Flat[];
}

export interface OpenPath {
  /** Grows to a size. Each call names a larger size. */
  grow(size: number): Promise<void> | void;
  /** Measures a line at the present size. */
  measure(line: string): Promise<Value> | Value;
  close(): Promise<void> | void;
}

export interface Flat {
  readonly line: string;
  readonly from: number;
  readonly to: number;
  readonly atMost: number;
}

const QUICK_SIZES = [100];
const QUICK_PART = 50;
const ROUNDS = isQuick ? 1 : 5;

/**
 * The largest size of every path: DEPUTE_BENCH_LARGEST, for a machine on which a path's own largest size takes too
 * long.
 */
const LARGEST = Number(process.env.DEPUTE_BENCH_LARGEST ?? Number.POSITIVE_INFINITY);

/** Returns the powers of ten from 100 to `largest`, at most DEPUTE_BENCH_LARGEST; in a quick run 100 alone. */
export function powersTo(largest: number): number[] {
  const powers: number[] = [];
  for (let size = 100; size <= largest; size *= 10) powers.push(size);
  return sizes(...powers);
}

/** Returns those of the sizes that are at most DEPUTE_BENCH_LARGEST; in a quick run 100 alone. */
export function sizes(...all: number[]): number[] {
  return isQuick ? QUICK_SIZES : all.filter((size) => size <= LARGEST);
}

/** Returns a number of calls: `full` divided by PART, in a quick run by 50, rounded up. */
export const calls = (full: number): number => Math.ceil(full / (isQuick ? QUICK_PART : PART));

/** Measures calls in several rounds, with a number of calls in flight. Returns the microseconds of one call. */
export async function usEach(
  count: number,
  atOnce: number,
  call: (i: number) => Promise<unknown>,
): Promise<Value> {
  const rounds: number[] = [];
  let done = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const ofRound = calls(count);
    const startMs = performance.now();
    await inFlight(ofRound, atOnce, () => call(done++));
    rounds.push(((performance.now() - startMs) * 1000) / ofRound);
  }
  return middleOf(rounds);
}

/** Measures calls in several rounds. Returns the microseconds of CPU time of one call, on this thread. */
export function cpuUsEach(count: number, call: () => unknown): Value {
  const rounds: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const ofRound = calls(count);
    const before = process.threadCpuUsage();
    for (let i = 0; i < ofRound; i++) call();
    const { user, system } = process.threadCpuUsage(before);
    rounds.push((user + system) / ofRound);
  }
  return middleOf(rounds);
}

/** Makes the benchmark of a path: a figure for each line at each size, and one for each required flatness. */
export function benchmarkOf(path: Path): Benchmark {
  const { name, unit, lines, flat = [] } = path;
  let opened: OpenPath | undefined;
  const values = new Map<string, number>();
  const figures: Figure[] = path.sizes.flatMap((size) =>
    lines.map((line, i) => ({
      name: line,
      unit,
      at: size,
      async measure() {
        opened ??= await path.open();
        if (i === 0) await opened.grow(size);
        const value = await opened.measure(line);
        values.set(`${line} ${size}`, typeof value === "number" ? value : value.value);
        return value;
      },
    })),
  );
  for (const { line, from, to, atMost } of flat) {
    if (!path.sizes.includes(to)) continue;
    figures.push({
      name: `${line}: ${to.toLocaleString("en")} by ${from.toLocaleString("en")}`,
      unit: "times",
      atMost,
      measure: () => (values.get(`${line} ${to}`) ?? Number.NaN) / (values.get(`${line} ${from}`) ?? 0),
    });
  }
  return { name, figures, close: () => opened?.close() };
}
