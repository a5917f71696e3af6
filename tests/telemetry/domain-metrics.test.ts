import { readFileSync } from "node:fs";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { createRevocation } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { DOMAIN_METRICS, type MetricEntry } from "@depute/service";
import { afterAll, beforeAll, expect, test } from "vitest";
import { call, introduce, result, startPlatform, type TestPlatform } from "../gateway/platform.ts";
import { type Grant, grant } from "../mcp/holder.ts";

/** This file tests the metrics of a platform after some work, as a scraper sees them. */

const TABLE: [string, MetricEntry][] = Object.entries(DOMAIN_METRICS);
let platform: TestPlatform;
beforeAll(async () => {
  platform = await startPlatform(["--metrics-agent-classes", "known,idle"]);
  for (const id of ["known", "known:one", "unknown"]) await introduce(platform, id);
}, 60_000);
afterAll(() => platform.stop());

/** Scrapes the platform without a client library, and returns the value of each series. */
async function scrape(): Promise<ReadonlyMap<string, number>> {
  const text = await (await fetch(`${platform.url}/metrics`)).text();
  const samples = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    samples.map((line) => {
      const end = line.lastIndexOf(" ");
      return [line.slice(0, end), Number(line.slice(end + 1))];
    }),
  );
}

const createTask = async (agentId: string): Promise<string> => {
  const created = await platform.clients.tasks.createTask({
    requestId: crypto.randomUUID(),
    draft: { agentId, description: "count words" },
  });
  return created.task?.id ?? "";
};

async function reserve({ token }: Grant, amountMicrocents: bigint): Promise<string> {
  const { reservation } = await platform.clients.spend.reserveSpend({
    requestId: crypto.randomUUID(),
    token: { token, format: "delegateos-sjt-v1" },
    amountMicrocents,
    lifetime: durationFromMs(60_000),
  });
  return reservation?.id ?? "";
}

async function spend(grant: Grant, amount: bigint, charge: bigint): Promise<void> {
  const reservationId = await reserve(grant, amount);
  await platform.clients.spend.commitSpend({ reservationId, amountMicrocents: charge });
}

test("count the platform's operations", async () => {
  for (const agentId of ["known", "known:one", "unknown"]) await createTask(agentId);
  await platform.clients.tasks.cancelTask({ taskId: await createTask("unknown") });
  const holder = await grant(platform, [["docs", "read", "a"]]);
  await spend(holder, 70n, 40n);
  await reserve(holder, 30n);
  const revocation = createRevocation(engine, holder.revocationId, "block", holder.keypair);
  await result(platform.post("/delegateos", call("delegateos/revoke", { revocation, dct: holder.token })));
  await platform.clients.tokens.verifyToken({
    token: { token: holder.token, format: "delegateos-sjt-v1" },
    requested: { namespace: "docs", action: "read", resource: "a" },
  });
  const series = await scrape();
  expect(Object.fromEntries(series)).toMatchObject({
    'depute_tasks_queued{agent_class="known"}': 2,
    'depute_tasks_queued{agent_class="idle"}': 0,
    'depute_tasks_queued{agent_class="other"}': 1,
    'depute_tasks_queue_age_seconds{agent_class="idle"}': 0,
    'depute_tasks_open{state="pending"}': 3,
    'depute_tasks_open{state="running"}': 0,
    'depute_tasks_ended_total{state="cancelled"}': 1,
    'depute_tasks_ended_total{state="completed"}': 0,
    depute_task_leases_lost_total: 0,
    depute_revocations: 1,
    'depute_denials_total{reason="revoked"}': 1,
    depute_spend_held_microcents: 30,
    depute_spend_reserved_microcents_total: 100,
    depute_spend_charged_microcents_total: 40,
    depute_reviews_open: 0,
    'depute_replicas{service="tasks",status="serving"}': 1,
  });
  expect(series.get('depute_store_size_bytes{store="tasks"}')).toBeGreaterThan(100_000);
  expect(series.get('depute_store_commit_duration_seconds_count{store="tasks"}')).toBeGreaterThan(3);
  expect(series.get("depute_revocations_staleness_seconds")).toBeLessThan(60);
});

test("name no agent that the operator did not name", async () => {
  const names = [...(await scrape()).keys()].filter((name) => name.startsWith("depute_"));
  expect(names.filter((name) => name.includes("unknown") || name.includes("known:one"))).toEqual([]);
});

test("have the kinds of the table", async () => {
  const text = await (await fetch(`${platform.url}/metrics`)).text();
  const kinds = new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, kind]) => [name, kind]));
  for (const [name, { kind }] of TABLE) expect([name, kinds.get(name)]).toEqual([name, kind]);
});

test.each(TABLE)("docs/metrics.md describes %s", (name, { kind, help, labels }) => {
  const page = readFileSync(new URL("../../docs/metrics.md", import.meta.url), "utf8");
  const list = Object.entries(labels).map(([label, values]) => `\`${label}\`: ${values}`);
  expect(page).toContain(`| \`${name}\` | ${kind} | ${help} | ${list.join("; ")} |`);
});

test("units follow OpenTelemetry's names", () => {
  for (const [name, { kind, help }] of TABLE) {
    expect([name, name.endsWith("_total")]).toEqual([name, kind === "counter"]);
    if (/seconds/i.test(help)) expect(name).toMatch(/_seconds(_total)?$/);
    if (/bytes/i.test(help)) expect(name).toMatch(/_bytes$/);
  }
});
