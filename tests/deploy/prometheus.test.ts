import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePorts } from "depute/ports";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { parse } from "yaml";
import { dashboard, ROWS } from "../../tools/dashboard.ts";
import { introduce, type Json, startPlatform, type TestPlatform } from "../gateway/platform.ts";

/** This file tests the alerts and the dashboard on a real Prometheus that scrapes a real platform. */

const DEPLOY = new URL("../../deploy/", import.meta.url).pathname;
const RULES = join(DEPLOY, "prometheus/depute.rules.yml");
const TESTS = join(DEPLOY, "prometheus/depute.rules.test.yml");

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: { readonly runbook: string };
}

const ALERTS: readonly Alert[] = parse(readFileSync(RULES, "utf8")).groups[0].rules;
const CASES: readonly {
  alert_rule_test: readonly { alertname: string; exp_alerts: readonly unknown[] }[];
}[] = parse(readFileSync(TESTS, "utf8")).tests;

describe("the alerts", () => {
  test("pass the checks of promtool", () => {
    expect(execFileSync("promtool", ["check", "rules", RULES], { encoding: "utf8" })).toContain("SUCCESS");
    expect(execFileSync("promtool", ["test", "rules", TESTS], { encoding: "utf8" })).toContain("SUCCESS");
  });

  test.each(ALERTS.map(({ alert, annotations }) => [alert, annotations.runbook]))(
    "%s has a case in which it fires, one in which it does not, and a paragraph",
    (alert, runbook) => {
      const expected = CASES.flatMap(({ alert_rule_test: each }) => each)
        .filter(({ alertname }) => alertname === alert)
        .map(({ exp_alerts: alerts }) => alerts.length);
      expect(expected.toSorted()).toEqual([0, 1]);
      const [page = "", anchor] = runbook.split("#");
      expect(anchor).toBe(alert.toLowerCase());
      const text = readFileSync(new URL(`../../${page}`, import.meta.url), "utf8");
      expect(text).toContain(`\n### ${alert}\n\n`);
    },
  );
});

test("deploy/grafana/depute.json equals the output of `npm run dashboard`", () => {
  expect(JSON.parse(readFileSync(join(DEPLOY, "grafana/depute.json"), "utf8"))).toEqual(dashboard());
});

describe("on a live Prometheus", () => {
  const folder = mkdtempSync(join(tmpdir(), "depute-prometheus-"));
  let platform: TestPlatform;
  let prometheus: ReturnType<typeof spawn>;
  let url = "";

  beforeAll(async () => {
    platform = await startPlatform([]);
    await introduce(platform, "agent");
    await platform.clients.tasks.createTask({
      requestId: "one",
      draft: { agentId: "agent", description: "do" },
    });
    const config = join(folder, "prometheus.yml");
    writeFileSync(
      config,
      JSON.stringify({
        global: { scrape_interval: "1s", evaluation_interval: "1s" },
        rule_files: [RULES],
        scrape_configs: [{ job_name: "depute", static_configs: [{ targets: [new URL(platform.url).host] }] }],
      }),
    );
    const [port = 0] = await freePorts(1);
    const flags = [`--config.file=${config}`, `--storage.tsdb.path=${folder}/data`];
    prometheus = spawn("prometheus", [...flags, `--web.listen-address=127.0.0.1:${port}`]);
    url = `http://127.0.0.1:${port}`;
    await vi.waitFor(async () => expect(await firstValue('up{job="depute"}')).toBe("1"), { timeout: 30_000 });
  }, 60_000);
  afterAll(async () => {
    prometheus.kill();
    await platform.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  async function query(expr: string) {
    const answer = await fetch(`${url}/api/v1/query?query=${encodeURIComponent(expr)}`);
    return (await answer.json()) as { status: string; data: { result: { value: [number, string] }[] } };
  }
  const firstValue = async (expr: string) => (await query(expr)).data.result[0]?.value[1];

  test("the scrape passes the checks of promtool", async () => {
    const text = await (await fetch(`${platform.url}/metrics`)).text();
    execFileSync("promtool", ["check", "metrics"], { input: text, encoding: "utf8" });
  });

  test("every rule is evaluated without an error, and no alert fires on a healthy platform", async () => {
    interface Rule {
      readonly health: string;
      readonly state: string;
    }
    const rules = async (): Promise<Rule[]> =>
      ((await (await fetch(`${url}/api/v1/rules`)).json()) as Json).data.groups[0].rules;
    // The first evaluation may precede the first scrape, so an alert may be pending until the next one.
    await vi.waitFor(
      async () => {
        const all = await rules();
        expect(all.filter(({ health, state }) => health !== "ok" || state !== "inactive")).toEqual([]);
        expect(all.length).toBe(ALERTS.length);
      },
      { timeout: 30_000 },
    );
  }, 40_000);

  const QUERIES = ROWS.flatMap(({ panels }) =>
    panels.flatMap(({ title, queries }) => Object.values(queries).map((expr) => [title, expr] as const)),
  );
  test.each(QUERIES)("the panel %s has a query of existing metrics", async (_, expr) => {
    const { status } = await query(expr.replaceAll("$job", "depute"));
    expect(status).toBe("success");
    const metadata = ((await (await fetch(`${url}/api/v1/metadata`)).json()) as Json).data;
    const names = expr.match(/\b(?:depute|process|nodejs)_[a-z0-9_]+/g) ?? [];
    expect(names.length).toBeGreaterThan(0);
    for (const name of names) expect(Object.keys(metadata)).toContain(name.replace(/_bucket$/, ""));
  });

  test("a panel shows the waiting task", async () => {
    expect(await firstValue('max by (agent_class) (depute_tasks_queued{job="depute"})')).toBe("1");
  });
});
