import { writeFileSync } from "node:fs";

/**
 * Writes deploy/grafana/depute.json, a dashboard for Grafana 10 and later. The panels below are its source; a test
 * compares them with the file, and runs each query on a live Prometheus.
 */

interface Panel {
  readonly title: string;
  /** Grafana's name of the unit. */
  readonly unit: string;
  /** The queries in PromQL, by the legend of their series. */
  readonly queries: Readonly<Record<string, string>>;
}

interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
}

const JOB = 'job="$job"';

export const ROWS: readonly Row[] = [
  {
    title: "Calls",
    panels: [
      {
        title: "Calls by service",
        unit: "reqps",
        queries: { "{{service}}": `sum by (service) (rate(depute_rpc_requests_total{${JOB}}[5m]))` },
      },
      {
        title: "Calls that fail for reasons of the platform",
        unit: "reqps",
        queries: {
          "{{service}} {{code}}": `sum by (service, code) (rate(depute_rpc_requests_total{${JOB}, code=~"INTERNAL|UNKNOWN|UNAVAILABLE|DATA_LOSS"}[5m]))`,
        },
      },
      {
        title: "Duration of CreateTask and VerifyToken",
        unit: "s",
        queries: {
          "{{method}} p50": `histogram_quantile(0.5, sum by (method, le) (rate(depute_rpc_duration_seconds_bucket{${JOB}, method=~"CreateTask|VerifyToken"}[5m])))`,
          "{{method}} p99": `histogram_quantile(0.99, sum by (method, le) (rate(depute_rpc_duration_seconds_bucket{${JOB}, method=~"CreateTask|VerifyToken"}[5m])))`,
        },
      },
      {
        title: "Open calls and streams",
        unit: "short",
        queries: { "{{service}}": `sum by (service) (depute_rpc_in_flight{${JOB}})` },
      },
    ],
  },
  {
    title: "Tasks",
    panels: [
      {
        title: "Waiting tasks",
        unit: "short",
        queries: { "{{agent_class}}": `max by (agent_class) (depute_tasks_queued{${JOB}})` },
      },
      {
        title: "Age of the oldest waiting task",
        unit: "s",
        queries: { "{{agent_class}}": `max by (agent_class) (depute_tasks_queue_age_seconds{${JOB}})` },
      },
      {
        title: "Open tasks",
        unit: "short",
        queries: { "{{state}}": `max by (state) (depute_tasks_open{${JOB}})` },
      },
      {
        title: "Ended tasks",
        unit: "ops",
        queries: { "{{state}}": `sum by (state) (rate(depute_tasks_ended_total{${JOB}}[5m]))` },
      },
      {
        title: "Lost leases and retries",
        unit: "ops",
        queries: {
          "lost leases": `sum(rate(depute_task_leases_lost_total{${JOB}}[5m]))`,
          retries: `sum(rate(depute_task_retries_total{${JOB}}[5m]))`,
        },
      },
    ],
  },
  {
    title: "Authority",
    panels: [
      {
        title: "Denials",
        unit: "ops",
        queries: { "{{reason}}": `sum by (reason) (rate(depute_denials_total{${JOB}}[5m]))` },
      },
      { title: "Revocations", unit: "short", queries: { revocations: `max(depute_revocations{${JOB}})` } },
      {
        title: "Age of the known revocations",
        unit: "s",
        queries: { "{{instance}}": `depute_revocations_staleness_seconds{${JOB}}` },
      },
      {
        title: "Held reservations in microcents",
        unit: "short",
        queries: { held: `max(depute_spend_held_microcents{${JOB}})` },
      },
      {
        title: "Spend in microcents a second",
        unit: "short",
        queries: {
          reserved: `sum(rate(depute_spend_reserved_microcents_total{${JOB}}[5m]))`,
          charged: `sum(rate(depute_spend_charged_microcents_total{${JOB}}[5m]))`,
        },
      },
      {
        title: "Checks",
        unit: "ops",
        queries: { "{{verdict}}": `sum by (verdict) (rate(depute_checks_total{${JOB}}[5m]))` },
      },
      {
        title: "Open reviews, log entries",
        unit: "short",
        queries: {
          "open reviews": `max(depute_reviews_open{${JOB}})`,
          "log entries": `max(depute_log_entries{${JOB}})`,
        },
      },
    ],
  },
  {
    title: "Stores and processes",
    panels: [
      {
        title: "Size of the stores",
        unit: "bytes",
        queries: { "{{store}}": `max by (store) (depute_store_size_bytes{${JOB}})` },
      },
      {
        title: "Duration of commits, p99",
        unit: "s",
        queries: {
          "{{store}}": `histogram_quantile(0.99, sum by (store, le) (rate(depute_store_commit_duration_seconds_bucket{${JOB}}[5m])))`,
        },
      },
      {
        title: "Processes by service",
        unit: "short",
        queries: { "{{service}} {{status}}": `max by (service, status) (depute_replicas{${JOB}})` },
      },
      {
        title: "Versions",
        unit: "short",
        queries: {
          "{{version}}, Node.js {{node_version}}": `count by (version, node_version) (depute_build_info{${JOB}})`,
        },
      },
      {
        title: "Memory",
        unit: "bytes",
        queries: { "{{instance}}": `process_resident_memory_bytes{${JOB}}` },
      },
      {
        title: "Lag of the event loop, p99",
        unit: "s",
        queries: { "{{instance}}": `nodejs_eventloop_lag_p99_seconds{${JOB}}` },
      },
    ],
  },
];

const COLUMNS = 3;
const WIDTH = 24 / COLUMNS;
const HEIGHT = 8;

/** Returns the dashboard in Grafana's JSON form. */
export function dashboard(): object {
  const panels: object[] = [];
  let y = 0;
  for (const { title, panels: own } of ROWS) {
    panels.push({
      type: "row",
      title,
      collapsed: false,
      gridPos: { h: 1, w: 24, x: 0, y },
      id: panels.length + 1,
      panels: [],
    });
    y += 1;
    for (const [i, panel] of own.entries()) {
      const gridPos = {
        h: HEIGHT,
        w: WIDTH,
        x: (i % COLUMNS) * WIDTH,
        y: y + Math.floor(i / COLUMNS) * HEIGHT,
      };
      panels.push(panelOf(panel, panels.length + 1, gridPos));
    }
    y += Math.ceil(own.length / COLUMNS) * HEIGHT;
  }
  return {
    title: "Depute",
    uid: "depute",
    tags: ["depute"],
    schemaVersion: 39,
    editable: true,
    time: { from: "now-6h", to: "now" },
    refresh: "30s",
    templating: {
      list: [
        { name: "source", label: "Data source", type: "datasource", query: "prometheus" },
        {
          name: "job",
          label: "Job",
          type: "query",
          datasource: SOURCE,
          query: "label_values(depute_build_info, job)",
          refresh: 1,
        },
      ],
    },
    panels,
  };
}

// biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana replaces the variable.
const SOURCE = { type: "prometheus", uid: "${source}" };

function panelOf({ title, unit, queries }: Panel, id: number, gridPos: object): object {
  return {
    ...{ type: "timeseries", title, id, gridPos, datasource: SOURCE },
    fieldConfig: { defaults: { unit, min: 0, custom: { fillOpacity: 8 } }, overrides: [] },
    options: {
      legend: { displayMode: "list", placement: "bottom" },
      tooltip: { mode: "multi", sort: "desc" },
    },
    targets: Object.entries(queries).map(([legendFormat, expr], i) => ({
      ...{ refId: String.fromCharCode(65 + i), expr, legendFormat, datasource: SOURCE },
    })),
  };
}

if (import.meta.main) {
  const file = new URL("../deploy/grafana/depute.json", import.meta.url);
  writeFileSync(file, `${JSON.stringify(dashboard(), null, 2)}\n`);
}
