import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { mergeFigures, readFigures } from "../../bench/docs/figures.ts";
import { GOALS } from "../../bench/docs/goals.ts";
import { renderPage } from "../../bench/docs/page.ts";
import { growthPlots } from "../../bench/docs/plots.ts";

const page = readFileSync("docs/performance.md", "utf8");
const figures = readFigures();
/** The day, machine, load and part of the measured run. */
const when = { day: "2026-01-01", machine: "2 × m", load: 1, part: 1 };

const suites = [
  ...new Set(globSync("*/*.bench.ts", { cwd: "bench" }).map((path) => path.split("/")[0] ?? "")),
].sort();

test("the table of suites names each suite once, in order", () => {
  const [, table = ""] =
    /\| suite \| measures \| beside \|\n\|---\|---\|---\|\n((?:\|.*\n)+)/.exec(page) ?? [];
  expect([...table.matchAll(/^\| `([a-z0-9-]+)` \|/gm)].map(([, suite]) => suite)).toEqual(suites);
});

test("the page shows each plot, and each plot that it shows exists", () => {
  const shown = [...page.matchAll(/\]\((performance\/[^)]+\.svg)\)/g)].map(([, path]) => path ?? "");
  for (const path of shown) expect(existsSync(join("docs", path)), path).toBe(true);
  expect(shown.sort()).toEqual(
    globSync("performance/*.svg", { cwd: "docs" })
      .map((path) => path.replaceAll("\\", "/"))
      .sort(),
  );
});

test("the plots are those of the figures: npm run bench -- --only-page", () => {
  for (const [name, plot] of growthPlots(figures)) {
    expect(readFileSync(join("docs/performance", name), "utf8"), name).toBe(plot);
  }
});

test("the tables are those of the figures: npm run bench -- --only-page", () => {
  expect(renderPage(page, figures, GOALS)).toBe(page);
});

test.each(["goals", "ratios", "runs"])("the page has the table %s", (name) => {
  expect(page).toMatch(new RegExp(`<!-- table: ${name} -->\n\n\\| [\\s\\S]*?\\n<!-- end -->`));
});

test("each goal names a suite", () => {
  expect(GOALS.filter(({ suite }) => !suites.includes(suite))).toEqual([]);
});

test("a suite keeps the benchmarks that did not run, and the less favourable circumstances", () => {
  const result = (benchmark: string, value: number) => ({
    suite: "s",
    benchmark,
    name: "f",
    unit: "us",
    value,
  });
  const first = mergeFigures({}, [result("a", 1), result("b", 2)], { ...when, load: 9, part: 10 });
  const second = mergeFigures(first, [result("b", 3)], when);
  expect(second.s).toMatchObject({ load: 9, part: 10 });
  expect(second.s?.results.map(({ benchmark, value }) => [benchmark, value])).toEqual([
    ["a", 1],
    ["b", 3],
  ]);
  const other = { ...result("a", 1), suite: "earlier" };
  expect(Object.keys(mergeFigures(second, [other], when))).toEqual(["earlier", "s"]);
  expect(mergeFigures(second, [result("a", 4), result("b", 5)], when).s).toMatchObject({ load: 1, part: 1 });
});

const goal = { text: "It is fast", suite: "s", benchmark: "b", figure: "f" };
const measured = (value: number) => ({
  s: { ...when, results: [{ benchmark: "b", name: "f", unit: "times", value, spread: 0.2 }] },
});

test.each([
  ["a value at the limit", measured(2), { atMost: 2 }, "| It is fast | ≤ 2 | 2 ± 5 % | met | `s` |"],
  ["a value above it", measured(2.5), { atMost: 2 }, "| It is fast | ≤ 2 | 2.5 ± 4 % | **not met** | `s` |"],
  ["a value below it", measured(1.5), { atLeast: 2 }, "| It is fast | ≥ 2 | 1.5 ± 7 % | **not met** | `s` |"],
  [
    "a value of a busy machine",
    { s: { ...measured(2).s, load: 2.1 } },
    { atMost: 2 },
    "| It is fast | ≤ 2 | 2 ± 5 % | met, preliminary | `s` |",
  ],
  ["no value", {}, { atLeast: 2 }, "| It is fast | ≥ 2 | not measured |  | `s` |"],
])("the table of goals shows %s", (_, values, limit, row) => {
  const empty = "<!-- table: goals -->\n<!-- end -->";
  expect(renderPage(empty, values, [{ ...goal, ...limit }])).toContain(row);
});
