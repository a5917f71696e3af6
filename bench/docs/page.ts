import type { Result } from "../results.ts";
import type { Figures, SuiteFigures } from "./figures.ts";
import type { PageGoal } from "./goals.ts";

type Shown = Omit<Result, "suite">;

/** Replaces the generated tables of the page. A table stands between comments that name it. */
export function renderPage(page: string, figures: Figures, goals: readonly PageGoal[]): string {
  const tables: Record<string, string> = {
    goals: goalTable(figures, goals),
    ratios: ratioTable(figures),
    runs: runTable(figures),
  };
  return page.replace(
    /(<!-- table: (\w+) -->)[\s\S]*?(<!-- end -->)/g,
    (whole, begin: string, name: string, end: string) => {
      const table = tables[name];
      return table === undefined ? whole : `${begin}\n\n${table}\n\n${end}`;
    },
  );
}

function goalTable(figures: Figures, goals: readonly PageGoal[]): string {
  const rows = goals.map(({ text, suite, benchmark, figure, atMost, atLeast }) => {
    const result = figures[suite]?.results.find(
      (each) => each.benchmark === benchmark && each.name === figure,
    );
    const limit = atMost !== undefined ? `≤ ${atMost}` : `≥ ${atLeast}`;
    if (result === undefined) return [text, limit, "not measured", "", `\`${suite}\``];
    const isMet = atMost !== undefined ? result.value <= atMost : result.value >= (atLeast ?? 0);
    const verdict = `${isMet ? "met" : "**not met**"}${isBusy(figures[suite]) ? ", preliminary" : ""}`;
    return [text, withUnit(limit, result), shown(result), verdict, `\`${suite}\``];
  });
  return table(["goal", "limit", "measured", "", "suite"], rows);
}

/** Whether more processes wanted a processor than there are, so that the figures are preliminary. */
function isBusy(figures: SuiteFigures | undefined): boolean {
  return figures !== undefined && figures.load > Number.parseInt(figures.machine, 10);
}

function ratioTable(figures: Figures): string {
  const rows = Object.entries(figures).flatMap(([suite, { results }]) =>
    results
      .filter(({ unit }) => unit === "times" || unit === "%")
      .map((result) => [`\`${suite}\``, result.benchmark, result.name, shown(result)]),
  );
  return table(["suite", "measurement", "ratio", "value"], rows);
}

function runTable(figures: Figures): string {
  const rows = Object.entries(figures).map(([suite, { day, machine, load, part }]) => [
    `\`${suite}\``,
    day,
    machine,
    String(load),
    part > 1 ? `1/${part}` : "all",
  ]);
  return table(["suite", "day", "machine", "highest load at a start", "amounts"], rows);
}

function shown({ value, unit, spread }: Shown): string {
  const noise = spread === undefined ? "" : ` ± ${((spread / value / 2) * 100).toFixed(0)} %`;
  return `${Number(value.toPrecision(3))}${unit === "times" ? "" : ` ${unit}`}${noise}`;
}

function withUnit(limit: string, { unit }: Shown): string {
  return unit === "times" ? limit : `${limit} ${unit}`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll("|", "/")).join(" | ")} |`;
  return [line(head), `|${head.map(() => "---|").join("")}`, ...rows.map(line)].join("\n");
}
