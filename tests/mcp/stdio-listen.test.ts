import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { Json } from "../gateway/platform.ts";
import { FIXTURE_MAP } from "./conformance/behind-depute.ts";
import { startFixture } from "./conformance/fixture-server.ts";
import { type Grant, grant } from "./holder.ts";
import { type LineClient, lineClient } from "./line-client.ts";
import { type McpPlatform, startPlatform } from "./platform.ts";
import { proxyArguments } from "./proxy-process.ts";
import { EXTENSION, modernServer, type TaskServer } from "./task-server.ts";

/** This file tests `subscriptions/listen` of revision 2026-07-28 over `depute mcp-proxy`. The clients use no SDK. */

const SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId";
const ACKNOWLEDGED = "notifications/subscriptions/acknowledged";
const TAKING = { extensions: { [EXTENSION]: {} }, elicitation: { form: {} } };
const WATCHED = "test://watched-resource";
const OTHER = "test://static-text";
const TASK_MAP = {
  tools: Object.fromEntries(
    ["slow", "ask"].map((name) => [name, { namespace: "data", action: "query", resource: name }]),
  ),
  passed: ["elicitation/create"],
};

const folder = mkdtempSync(join(tmpdir(), "depute-stdio-listen-"));
let platform: McpPlatform;
let jobs: TaskServer;
let fixture: Awaited<ReturnType<typeof startFixture>>;
const clients: LineClient[] = [];
beforeAll(async () => {
  jobs = await modernServer();
  fixture = await startFixture();
  platform = await startPlatform({});
}, 60_000);
afterAll(async () => {
  for (const client of clients) await client.close();
  jobs.close();
  fixture.stop();
  await platform.stop();
  rmSync(folder, { recursive: true, force: true });
});

function connect(holder: Grant, upstream: object): LineClient {
  const client = lineClient(proxyArguments({ platform, folder }, { upstream, holder }), TAKING);
  clients.push(client);
  return client;
}

/** Waits for a notification of one request `subscriptions/listen`. */
const notified = (client: LineClient, subscription: number, fits: (message: Json) => boolean = () => true) =>
  client.take((message) => message.params?._meta?.[SUBSCRIPTION] === subscription && fits(message));

const acknowledged = async (client: LineClient, subscription: number): Promise<Json> =>
  (await notified(client, subscription, ({ method }) => method === ACKNOWLEDGED)).params.notifications;

const listen = (client: LineClient, notifications: Json): number =>
  client.send("subscriptions/listen", { notifications });

const refused = async (client: LineClient, notifications: Json, capabilities?: Json): Promise<Json> =>
  (await client.request("subscriptions/listen", { notifications }, capabilities)).error;

describe("tasks", () => {
  const mayCallSlow = () => grant(platform, [["data", "query", "slow"]]);
  const connectTasks = (holder: Grant) =>
    connect(holder, { http: { url: jobs.url }, map: TASK_MAP, revision: "auto" });
  const begin = async (client: LineClient, name: string): Promise<string> =>
    (await client.request("tools/call", { name, arguments: {} })).result.taskId;
  const ownTasks = () => new Set(jobs.tasks.keys());
  /** Begins a task, and returns the proxy's id of it and the server's own id. */
  const beginKnown = async (client: LineClient, name: string) => {
    const before = ownTasks();
    const taskId = await begin(client, name);
    const [own = ""] = [...ownTasks()].filter((one) => !before.has(one));
    return { taskId, own };
  };
  const shown = (client: LineClient, subscription: number, status: string): Promise<Json> =>
    notified(
      client,
      subscription,
      ({ method, params }) => method === "notifications/tasks" && params.status === status,
    );

  test("are acknowledged, then shown until their end", async () => {
    const client = connectTasks(await mayCallSlow());
    const { taskId, own } = await beginKnown(client, "slow");
    const subscription = listen(client, { taskIds: [taskId, own, "no task"] });
    expect(await acknowledged(client, subscription)).toEqual({ taskIds: [taskId] });
    expect((await shown(client, subscription, "working")).params.taskId).toBe(taskId);
    jobs.finish(own);
    const done = await shown(client, subscription, "completed");
    expect(done.params.result.content[0].type).toBe("text");
    expect(JSON.stringify(done)).not.toContain(own);
  }, 30_000);

  test("end with the server's stream, and the request is answered", async () => {
    const client = connectTasks(await mayCallSlow());
    const { taskId, own } = await beginKnown(client, "slow");
    const subscription = listen(client, { taskIds: [taskId] });
    await shown(client, subscription, "working");
    jobs.endStreams(own);
    const end = await client.take(({ id }) => id === subscription);
    expect(end.result).toEqual({ resultType: "complete", _meta: { [SUBSCRIPTION]: subscription } });
  }, 30_000);

  test("end with the client's cancellation, while another request goes on", async () => {
    const client = connectTasks(await mayCallSlow());
    const { taskId, own } = await beginKnown(client, "slow");
    const [left, kept] = [listen(client, { taskIds: [taskId] }), listen(client, { taskIds: [taskId] })];
    for (const subscription of [left, kept]) await shown(client, subscription, "working");
    client.notify("notifications/cancelled", { requestId: left });
    await vi.waitFor(() => expect(jobs.listeners(own)).toBe(1));
    jobs.finish(own);
    await shown(client, kept, "completed");
    const ofLeft = client
      .waiting()
      .filter(({ params }) => params?._meta?.[SUBSCRIPTION] === left && params.status === "completed");
    expect(ofLeft).toEqual([]);
  }, 30_000);

  test("end with the client", async () => {
    const client = connectTasks(await mayCallSlow());
    const { taskId, own } = await beginKnown(client, "slow");
    await shown(client, listen(client, { taskIds: [taskId] }), "working");
    expect(jobs.listeners(own)).toBe(1);
    await client.close();
    await vi.waitFor(() => expect(jobs.listeners(own)).toBe(0));
  }, 30_000);

  test("of another caller are not acknowledged, and do not reach the server", async () => {
    const [owner, stranger] = [await mayCallSlow(), await mayCallSlow()].map(connectTasks);
    const { taskId } = await beginKnown(owner as LineClient, "slow");
    const before = jobs.received.length;
    const subscription = listen(stranger as LineClient, { taskIds: [taskId] });
    expect(await acknowledged(stranger as LineClient, subscription)).toEqual({});
    expect(jobs.received.slice(before).map(({ method }) => method)).not.toContain("subscriptions/listen");
  }, 30_000);

  test("are refused with a reason", async () => {
    const client = connectTasks(await mayCallSlow());
    const many = Array.from({ length: 101 }, (_, i) => `task-${i}`);
    expect((await refused(client, { taskIds: many })).code).toBe(-32602);
    expect((await refused(client, { taskIds: "x" })).code).toBe(-32602);
    expect((await refused(client, { taskIds: ["x"] }, {})).code).toBe(-32021);
  }, 30_000);
});

describe("resources", () => {
  const connectResources = (holder: Grant) =>
    connect(holder, { http: { url: fixture.url }, map: FIXTURE_MAP, revision: "auto" });
  const rights = (resource: string) =>
    grant(platform, [
      ["compute", "execute", "fixture/**"],
      ["docs", "read", resource],
    ]);
  const change = (client: LineClient, uri: string) =>
    client.request("tools/call", { name: "change_resource", arguments: { uri } });
  const updated = (client: LineClient, subscription: number): Promise<Json> =>
    notified(client, subscription, ({ method }) => method === "notifications/resources/updated");

  test("are announced to the requests that name them, until these end", async () => {
    const client = connectResources(await rights("test/**"));
    const [one, both] = [
      listen(client, { resourceSubscriptions: [WATCHED] }),
      listen(client, { resourceSubscriptions: [WATCHED, OTHER] }),
    ];
    expect(await acknowledged(client, one)).toEqual({ resourceSubscriptions: [WATCHED] });
    expect(await acknowledged(client, both)).toEqual({ resourceSubscriptions: [WATCHED, OTHER] });
    await change(client, WATCHED);
    for (const subscription of [one, both])
      expect((await updated(client, subscription)).params.uri).toBe(WATCHED);
    client.notify("notifications/cancelled", { requestId: one });
    await change(client, WATCHED);
    await change(client, OTHER);
    expect((await updated(client, both)).params.uri).toBe(WATCHED);
    expect((await updated(client, both)).params.uri).toBe(OTHER);
    const ofOne = client.waiting().filter(({ params }) => params?._meta?.[SUBSCRIPTION] === one);
    expect(ofOne).toEqual([]);
  }, 30_000);

  test("need the right to read each of them", async () => {
    const client = connectResources(await rights("test/static-text"));
    expect((await refused(client, { resourceSubscriptions: [OTHER, WATCHED] })).code).toBe(-32001);
    const subscription = listen(client, { resourceSubscriptions: [OTHER] });
    expect(await acknowledged(client, subscription)).toEqual({ resourceSubscriptions: [OTHER] });
  }, 30_000);
});
