import { changeOf, keyOf } from "./compare.ts";
import type { Row } from "./report.ts";
import type { Result, Run } from "./results.ts";

/** Returns the lines of the table over all suites: value, spread, goal, and the change since an earlier run. */
export function summaryRows(results: readonly Result[], before: Pick<Run, "results"> | undefined): Row[] {
  const earlier = new Map(before?.results.map((result) => [keyOf(result), result]));
  return results.map((result) => {
    const { suite, benchmark, name, value, unit, spread, ratio, goal } = result;
    const old = earlier.get(keyOf(result));
    const change = old === undefined ? 0 : changeOf(old, result);
    return [
      suite,
      benchmark,
      name,
      `${value.toPrecision(4)} ${unit}`,
      spread === undefined ? "" : `+-${((spread / value / 2) * 100).toFixed(0)} %`,
      ratio === undefined ? "" : `x${ratio.toPrecision(3)}`,
      goal?.text ?? "",
      change === 0 ? "" : `${change > 0 ? "+" : ""}${(change * 100).toFixed(0)} %`,
    ];
  });
}
