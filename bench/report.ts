import type { Figure, Goal } from "./bench.ts";
import type { Measured } from "./measure.ts";

/** The cells of one line of the printed table. */
export type Row = readonly string[];

/**
 * Returns one line per contender: microseconds per call, spread of the middle half, speed relative to the first
 * contender, and goal.
 */
export function timeRows(measured: readonly Measured[]): Row[] {
  const [baseline] = measured;
  return measured.map(({ contender: { name, goal }, median, spread }) => {
    const ratio = (baseline?.median ?? Number.NaN) / median;
    const other =
      goal?.as === undefined ? baseline : measured.find(({ contender }) => contender.name === goal.as);
    const speed = (other?.median ?? Number.NaN) / median;
    return [
      name,
      `${median.toPrecision(4)} us`,
      `+-${((spread / median / 2) * 100).toFixed(0)} %`,
      `x${ratio.toPrecision(3)}`,
      goal === undefined ? "" : describe(goal, speed),
    ];
  });
}

/** Returns the table line of a figure: its name, its value, and whether the value meets the goal. */
export function figureRow({ name, unit, atMost, atLeast }: Figure, value: number): Row {
  const shown = `${value.toPrecision(4)} ${unit}`;
  if (atMost !== undefined) return [name, shown, `${verdictOf(value <= atMost)}: goal at most ${atMost}`];
  if (atLeast !== undefined) return [name, shown, `${verdictOf(value >= atLeast)}: goal at least ${atLeast}`];
  return [name, shown];
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

function describe(goal: Goal, speed: number): string {
  const as = goal.as === undefined ? "" : ` of ${goal.as}`;
  if ("times" in goal)
    return `${verdictOf(speed >= goal.times)}: x${speed.toPrecision(3)}, goal x${goal.times}${as}`;
  const slower = 1 / speed - 1;
  const goalText = `goal within ${goal.within * 100} %${as}`;
  return `${verdictOf(slower <= goal.within)}: ${(slower * 100).toFixed(1)} % slower, ${goalText}`;
}

function verdictOf(isMet: boolean): string {
  return isMet ? "met" : "NOT MET";
}
