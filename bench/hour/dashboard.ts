import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePorts } from "depute/ports";
import { ROWS } from "../../tools/dashboard.ts";
import { drawCharts, type LineChart } from "../plots/line-charts.ts";

const SCRAPE_SECONDS = 5;
/** Maximum number of series in one chart. The chart shows those with the highest values. */
const MAX_LINES = 4;
const POINTS = 60;

interface Series {
  readonly metric: Readonly<Record<string, string>>;
  readonly values: readonly [time: number, value: string][];
}

/** A Prometheus that scrapes the run's platform. Draws the panels of the dashboard from what it stored. */
export class Dashboard {
  readonly #folder: string;
  readonly #process: ChildProcess;
  readonly #url: string;
  readonly #startSeconds = Date.now() / 1000;

  private constructor(folder: string, process: ChildProcess, url: string) {
    this.#folder = folder;
    this.#process = process;
    this.#url = url;
  }

  /**
   * Starts `prometheus`, which must be on the PATH.
   *
   * @param address host and port of the platform's metrics
   */
  static async start(address: string): Promise<Dashboard> {
    const folder = mkdtempSync(join(tmpdir(), "depute-dashboard-"));
    const config = join(folder, "prometheus.yml");
    const interval = `${SCRAPE_SECONDS}s`;
    writeFileSync(
      config,
      JSON.stringify({
        global: { scrape_interval: interval },
        scrape_configs: [{ job_name: "depute", static_configs: [{ targets: [address] }] }],
      }),
    );
    const [port = 0] = await freePorts(1);
    const flags = [`--config.file=${config}`, `--storage.tsdb.path=${folder}/data`];
    const child = spawn("prometheus", [...flags, `--web.listen-address=127.0.0.1:${port}`], {
      stdio: "ignore",
    });
    await once(child, "spawn");
    return new Dashboard(folder, child, `http://127.0.0.1:${port}`);
  }

  /**
   * Draws each row of the dashboard as one SVG document.
   *
   * @returns the documents by the title of their row
   */
  async draw(): Promise<ReadonlyMap<string, string>> {
    const endSeconds = Date.now() / 1000;
    const step = Math.max(SCRAPE_SECONDS, (endSeconds - this.#startSeconds) / POINTS);
    const times = Array.from({ length: POINTS + 1 }, (_, i) => this.#startSeconds + i * step).filter(
      (time) => time <= endSeconds,
    );
    const pictures = new Map<string, string>();
    for (const { title, panels } of ROWS) {
      const charts: LineChart[] = [];
      for (const panel of panels) {
        const lines = [];
        for (const [legend, expr] of Object.entries(panel.queries)) {
          for (const series of await this.#range(expr, times, step))
            lines.push({ label: labelOf(legend, series), values: valuesAt(series, times, panel.unit) });
        }
        lines.sort((a, b) => highest(b.values) - highest(a.values));
        charts.push({ title: panel.title, unit: unitOf(panel.unit), lines: lines.slice(0, MAX_LINES) });
      }
      const xs = times.map((time) => Math.round(((time - this.#startSeconds) / 60) * 10) / 10);
      pictures.set(title, drawCharts({ title, xLabel: "minute", xs, charts }));
    }
    return pictures;
  }

  async stop(): Promise<void> {
    this.#process.kill();
    await once(this.#process, "exit");
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #range(expr: string, times: readonly number[], step: number): Promise<readonly Series[]> {
    const range = { start: String(times[0]), end: String(times.at(-1)), step: String(step) };
    // A run may be shorter than five minutes, so rates are those of one minute.
    const query = expr.replaceAll("$job", "depute").replaceAll("[5m]", "[1m]");
    const response = await fetch(
      `${this.#url}/api/v1/query_range?${new URLSearchParams({ query, ...range })}`,
    );
    const { status, data } = (await response.json()) as { status: string; data: { result: Series[] } };
    if (status !== "success") throw new Error(`Prometheus refused the query ${query}`);
    return data.result;
  }
}

/** Replaces the labels in a legend, such as `{{service}}`, by their values. */
function labelOf(legend: string, { metric }: Series): string {
  return legend.replaceAll(/\{\{(\w+)\}\}/g, (_, label: string) => metric[label] ?? "");
}

/**
 * Returns a series' values at the given times, bytes in MB; NaN for a time at which the series has no value.
 *
 * @param unit Grafana's name of the values' unit
 */
function valuesAt({ values }: Series, times: readonly number[], unit: string): number[] {
  const scale = unit === "bytes" ? 1e-6 : 1;
  const byTime = new Map(values.map(([time, value]) => [Math.round(time), Number(value) * scale]));
  return times.map((time) => byTime.get(Math.round(time)) ?? Number.NaN);
}

const highest = (values: readonly number[]) => Math.max(0, ...values.filter(Number.isFinite));

/** Returns the name for people of a unit in Grafana's spelling. */
function unitOf(unit: string): string {
  const names: Record<string, string> = {
    ...{ reqps: "calls a second", ops: "a second", s: "seconds", bytes: "MB", short: "number" },
  };
  return names[unit] ?? unit;
}
