import { isQuick } from "./amount.ts";
import type { Figure, Goal, Value } from "./bench.ts";
import type { Measured } from "./measure.ts";
import type { Result } from "./results.ts";

/** The cells of one line of the printed table. */
export type Row = readonly string[];

/** A result without the names of its suite and benchmark. */
type OwnResult = Omit<Result, "suite" | "benchmark">;

/** Returns one result per contender: the median time of a call, and its speed relative to the first contender. */
export function timeResults(measured: readonly Measured[]): OwnResult[] {
  const [baseline] = measured;
  return measured.map(({ contender: { name, goal }, median, spread }) => {
    const other =
      goal?.as === undefined ? baseline : measured.find(({ contender }) => contender.name === goal.as);
    const speed = (other?.median ?? Number.NaN) / median;
    return {
      ...{ name, value: median, unit: "us", spread },
      ratio: (baseline?.median ?? Number.NaN) / median,
      ...(goal !== undefined && { goal: goalResult(goal, speed) }),
    };
  });
}

/**
 * Returns one line per contender: microseconds per call, spread of the middle half, speed relative to the first
 * contender, and goal.
 */
export function timeRows(measured: readonly Measured[]): Row[] {
  return timeResults(measured).map(({ name, value, spread = Number.NaN, ratio, goal }) => [
    name,
    `${value.toPrecision(4)} us`,
    `+-${((spread / value / 2) * 100).toFixed(0)} %`,
    `x${ratio?.toPrecision(3)}`,
    goal?.text ?? "",
  ]);
}

/** Returns the result of a figure. */
export function figureResult({ name, unit, atMost, atLeast, at }: Figure, measured: Value): OwnResult {
  const { value, spread } = typeof measured === "number" ? { value: measured, spread: undefined } : measured;
  const result = {
    name,
    value,
    unit,
    ...(spread !== undefined && { spread }),
    ...(at !== undefined && { at }),
  };
  const [isMet, limit] =
    atMost !== undefined
      ? [value <= atMost, `at most ${atMost}`]
      : [value >= (atLeast ?? 0), `at least ${atLeast}`];
  if (atMost === undefined && atLeast === undefined) return result;
  return { ...result, goal: { text: `${verdictOf(isMet)}: goal ${limit}`, isMet } };
}

/** Returns the table line of a figure: its name, its value, and whether the value meets the goal. */
export function figureRow(figure: Figure, measured: Value): Row {
  const { name, value, unit, spread, goal } = figureResult(figure, measured);
  const shown = `${value.toPrecision(4)} ${unit}`;
  const noise = spread === undefined ? "" : `+-${((spread / value / 2) * 100).toFixed(0)} %`;
  return [name, shown, noise, goal?.text ?? ""];
}

/** Prints lines as a table. */
export function printTable(rows: readonly Row[]): void {
  const widths = rows.reduce<number[]>((all, row) => {
    return row.map((cell, i) => Math.max(cell.length, all[i] ?? 0)).concat(all.slice(row.length));
  }, []);
  for (const row of rows) {
    console.log(`  ${row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join("  ")}`.trimEnd());
  }
}

function goalResult(goal: Goal, speed: number): NonNullable<Result["goal"]> {
  const as = goal.as === undefined ? "" : ` of ${goal.as}`;
  if ("times" in goal) {
    const isMet = speed >= goal.times;
    return { text: `${verdictOf(isMet)}: x${speed.toPrecision(3)}, goal x${goal.times}${as}`, isMet };
  }
  const slower = 1 / speed - 1;
  const isMet = slower <= goal.within;
  const goalText = `goal within ${goal.within * 100} %${as}`;
  return { text: `${verdictOf(isMet)}: ${(slower * 100).toFixed(1)} % slower, ${goalText}`, isMet };
}

function verdictOf(isMet: boolean): string {
  if (isQuick) return "not judged";
  return isMet ? "met" : "NOT MET";
}
