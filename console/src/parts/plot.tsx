import { useEffect, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

interface PlotProps {
  readonly label: string;
  /** The times of the values, in epoch seconds. */
  readonly x: readonly number[];
  readonly lines: readonly {
    readonly name: string;
    /** The CSS variable of a color of the theme, e.g. `--accent`. */
    readonly color: string;
    readonly values: readonly (number | null)[];
  }[];
}

const HEIGHT_PX = 190;

/** Plots values over time. Screen readers get the newest values as text. */
export function Plot({ label, x, lines }: PlotProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  const theme = useThemeName();
  const data = [x, ...lines.map(({ values }) => values)] as unknown as uPlot.AlignedData;
  const latest = useRef({ lines, data });
  latest.current = { lines, data };
  // biome-ignore lint/correctness/useExhaustiveDependencies: another theme has other colors
  useEffect(() => {
    const node = place.current;
    if (node === null) return;
    const created = new uPlot(optionsOf(node, latest.current.lines), latest.current.data, node);
    plot.current = created;
    const size = new ResizeObserver(() => created.setSize({ width: node.clientWidth, height: HEIGHT_PX }));
    size.observe(node);
    return () => {
      size.disconnect();
      created.destroy();
      plot.current = null;
    };
  }, [theme]);
  useEffect(() => {
    plot.current?.setData(latest.current.data);
  });
  return (
    <figure className="plot" aria-label={label}>
      <div ref={place} aria-hidden="true" />
      <figcaption className="row wrap small-text">
        {lines.map(({ name, color, values }) => (
          <span key={name} className="legend">
            <span className={`swatch swatch${color}`} aria-hidden="true" />
            {name}: {format(values.findLast((value) => value !== null) ?? 0)}
          </span>
        ))}
      </figcaption>
    </figure>
  );
}

function optionsOf(node: HTMLElement, lines: PlotProps["lines"]): uPlot.Options {
  const style = getComputedStyle(document.documentElement);
  const color = (name: string) => style.getPropertyValue(name).trim();
  const axis = {
    stroke: color("--quiet"),
    grid: { stroke: color("--line"), width: 1 },
    ticks: { stroke: color("--line"), width: 1 },
  };
  return {
    width: node.clientWidth,
    height: HEIGHT_PX,
    legend: { show: false },
    cursor: { show: false },
    scales: { y: { range: (_, __, max) => [0, max > 0 ? max * 1.15 : 1] } },
    axes: [axis, { ...axis, size: 54 }],
    series: [
      {},
      ...lines.map((line) => ({
        label: line.name,
        stroke: color(line.color),
        width: 2,
        spanGaps: true,
        points: { show: line.values.includes(null), size: 6 },
      })),
    ],
  };
}

/**
 * Returns the name of the current theme. The calling component renders again when the user or the system selects
 * another theme.
 */
function useThemeName(): string {
  const [name, setName] = useState(readThemeName);
  useEffect(() => {
    const changed = () => setName(readThemeName());
    const system = matchMedia("(prefers-color-scheme: dark)");
    const chosen = new MutationObserver(changed);
    chosen.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    system.addEventListener("change", changed);
    return () => {
      chosen.disconnect();
      system.removeEventListener("change", changed);
    };
  }, []);
  return name;
}

function readThemeName(): string {
  return `${document.documentElement.dataset.theme} ${matchMedia("(prefers-color-scheme: dark)").matches}`;
}

function format(value: number): string {
  return value.toLocaleString("en", { maximumFractionDigits: value < 1 ? 4 : 1 });
}
