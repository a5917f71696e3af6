/**
 * A line of a chart, with one value for each place on the horizontal axis. NaN means no value: the line connects the
 * places beside it.
 */
export interface Line {
  readonly label: string;
  readonly values: readonly number[];
}

export interface LineChart {
  readonly title: string;
  readonly unit: string;
  readonly lines: readonly Line[];
}

/** A picture of charts below one another, with one common horizontal axis. */
export interface Charts {
  readonly title: string;
  readonly xLabel: string;
  readonly xs: readonly number[];
  /** The scale of the horizontal axis; linear unless stated. A logarithmic axis needs positive places. */
  readonly xScale?: "linear" | "log";
  readonly charts: readonly LineChart[];
}

const WIDTH = 760;
const CHART = { top: 34, height: 110, gap: 62, left: 70, right: 20 };
const COLORS = ["#1f6feb", "#d1242f", "#1a7f37", "#9a6700"];
const INNER = WIDTH - CHART.left - CHART.right;
/** Maximum number of labels on the horizontal axis. */
const X_LABELS = 12;

/** Draws line charts as an SVG document. Each vertical axis begins at 0. */
export function drawCharts({ title, xLabel, xs, xScale = "linear", charts }: Charts): string {
  const height = CHART.top + charts.length * (CHART.height + CHART.gap) + 10;
  const parts = charts.map((chart, i) =>
    drawChart(chart, xs, xScale, CHART.top + 26 + i * (CHART.height + CHART.gap)),
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="11">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>`,
    `<text x="${CHART.left}" y="20" font-size="14" font-weight="bold">${escaped(title)}</text>`,
    ...parts,
    `<text x="${CHART.left + INNER / 2}" y="${height - 8}" text-anchor="middle">${escaped(xLabel)}</text>`,
    "</svg>",
    "",
  ].join("\n");
}

function drawChart(
  { title, unit, lines }: LineChart,
  xs: readonly number[],
  xScale: "linear" | "log",
  top: number,
): string {
  const highest = ceilingOf(Math.max(0, ...lines.flatMap(({ values }) => values.filter(Number.isFinite))));
  const place = (value: number) => (xScale === "log" ? Math.log10(value) : value);
  const first = place(xs[0] ?? 1);
  const span = place(xs.at(-1) ?? 1) - first || 1;
  const x = (value: number) => round(CHART.left + ((place(value) - first) / span) * INNER);
  const y = (value: number) => round(top + CHART.height * (1 - value / highest));
  const grid = [0, 0.5, 1].map((part) => {
    const at = y(part * highest);
    return (
      `<line x1="${CHART.left}" x2="${CHART.left + INNER}" y1="${at}" y2="${at}" stroke="#d0d7de"/>` +
      `<text x="${CHART.left - 6}" y="${at + 4}" text-anchor="end">${round(part * highest)}</text>`
    );
  });
  const step = Math.max(1, Math.ceil(xs.length / X_LABELS));
  const labels = xs
    .filter((_, i) => i % step === 0)
    .map(
      (at) =>
        `<text x="${x(at)}" y="${top + CHART.height + 15}" text-anchor="middle">${xScale === "log" ? at.toLocaleString("en") : at}</text>`,
    );
  const drawn = lines.map(({ values }, i) => {
    const points = xs.flatMap((at, j) => {
      const value = values[j] ?? Number.NaN;
      return Number.isFinite(value) ? [`${x(at)},${y(value)}`] : [];
    });
    return `<polyline fill="none" stroke-width="1.5" stroke="${colorOf(i)}" points="${points.join(" ")}"/>`;
  });
  const legend = lines.map(({ label }, i) => `<tspan fill="${colorOf(i)}" dx="12">${escaped(label)}</tspan>`);
  return [
    `<text x="${CHART.left}" y="${top - 8}"><tspan font-weight="bold">${escaped(title)}</tspan> in ${escaped(unit)}${legend.join("")}</text>`,
    ...grid,
    ...labels,
    ...drawn,
  ].join("\n");
}

/** Returns the lowest round number that is not below the value. */
function ceilingOf(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return (
    [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((factor) => factor * power).find((it) => it >= value) ?? 10 * power
  );
}

const colorOf = (i: number) => COLORS[i % COLORS.length];
const round = (value: number) => Math.round(value * 100) / 100;

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
