import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { clientsOver } from "@depute/client";
import { createGrpcJsTransport } from "@depute/grpc-js";
import { afterAll, describe, expect, test } from "vitest";
import { introduce, type Json, startPlatform } from "../gateway/platform.ts";
import { Receiver, type Reply } from "./receiver.ts";
import { Scene } from "./scene.ts";
import { begin, config } from "./webhook-messages.ts";

const HOSTS = ["--a2a-webhook-hosts", "127.0.0.1,localhost"];
const VERSION = { "a2a-version": "1.0" };
const HELLO = ["WORKING", "artifact hello", "COMPLETED"];

describe("deliveries", () => {
  const receiver = new Receiver();
  const scene = new Scene("JSONRPC", HOSTS);

  test.each<[string, Reply, readonly string[]]>([
    ["that are refused", (response) => response.writeHead(500).end(), HELLO],
    ["that are redirected", (response) => response.writeHead(307, { location: "/trap" }).end(), HELLO],
    ["whose connection breaks after the receiver has read them", (response) => response.destroy(), HELLO],
  ])("%s are repeated before any later one, and no redirect is followed", async (name, fault, words) => {
    const path = `/${name.replaceAll(" ", "-")}`;
    const reply: Reply = (response, delivery, earlier) =>
      earlier === 0 ? fault(response, delivery, earlier) : response.writeHead(200).end();
    await begin(scene, "hello", receiver.url(path, reply));
    await expect.poll(() => receiver.seen(path), { timeout: 10_000 }).toEqual([words[0], ...words]);
    expect(receiver.at("/trap")).toEqual([]);
  });

  test("to a receiver that never answers delay no other webhook", async () => {
    const taskId = await begin(
      scene,
      "ask",
      receiver.url("/silent", () => {}),
    );
    await scene.client.createTaskPushNotificationConfig(config(taskId, receiver.url("/awake")));
    await expect.poll(() => receiver.at("/silent").length).toBe(1);
    await scene.client.cancelTask({ tenant: "", id: taskId, metadata: undefined });
    await expect.poll(() => receiver.seen("/awake").at(-1)).toBe("CANCELED");
    expect(receiver.at("/silent")).toHaveLength(1);
  });

  test("are accepted by the status, whatever the body", async () => {
    const endless: Reply = (response) => {
      response.writeHead(200);
      response.write("x".repeat(100_000));
    };
    await begin(scene, "hello", receiver.url("/endless", endless));
    await expect.poll(() => receiver.seen("/endless")).toEqual(HELLO);
  });

  test("do not reach a name that leads to a private address", async () => {
    const taskId = await begin(scene, "hello", receiver.url("/private", undefined, "localhost"));
    await scene.client.createTaskPushNotificationConfig(config(taskId, receiver.url("/listed")));
    const other = await begin(scene, "hello", receiver.url("/after"));
    expect(other).not.toBe(taskId);
    await expect.poll(() => receiver.seen("/after")).toEqual(HELLO);
    expect(receiver.at("/private")).toEqual([]);
  });

  test("follow the last change of a webhook with the same id", async () => {
    const taskId = await begin(scene, "ask", receiver.url("/before"), { id: "one" });
    await expect.poll(() => receiver.seen("/before").at(-1)).toBe("INPUT_REQUIRED");
    await scene.client.createTaskPushNotificationConfig(config(taskId, receiver.url("/now"), { id: "one" }));
    await scene.client.cancelTask({ tenant: "", id: taskId, metadata: undefined });
    await expect.poll(() => receiver.seen("/now")).toEqual(["CANCELED"]);
    expect(receiver.seen("/before")).not.toContain("CANCELED");
  });

  test("have a limit of webhooks for each task", async () => {
    const taskId = await begin(scene, "ask", receiver.url("/first"));
    const more = (id: string) =>
      scene.client.createTaskPushNotificationConfig(config(taskId, receiver.url("/more"), { id }));
    for (let count = 1; count < 16; count++) await more(`webhook ${count}`);
    await expect(more("one too many")).rejects.toThrow("LIMIT_EXCEEDED");
    await expect(more("webhook 1")).resolves.toMatchObject({ id: "webhook 1" });
  });
});

describe("webhooks over plain HTTP", () => {
  const receiver = new Receiver();
  const scene = new Scene("HTTP+JSON", HOSTS);
  const ask = async (path: string, init: RequestInit = {}) => {
    const headers = { ...VERSION, "content-type": "application/a2a+json" };
    const answer = await fetch(`${scene.platform.url}/a2a/worker/tasks/${path}`, { headers, ...init });
    return { status: answer.status, body: (await answer.json()) as Json };
  };

  test("have the addresses and bodies of the specification", async () => {
    const id = await begin(scene, "ask", receiver.url("/any"), { id: "0" });
    const all = `${id}/pushNotificationConfigs`;
    const url = receiver.url("/plain");
    const body = JSON.stringify({ id: "1", url, token: "word", authentication: { scheme: "Basic" } });
    const made = { taskId: id, id: "1", url, authentication: { scheme: "Basic" } };
    expect(await ask(all, { method: "POST", body })).toEqual({ status: 200, body: made });
    expect(await ask(`${all}/1`)).toEqual({ status: 200, body: made });
    const first = await ask(`${all}?pageSize=1`);
    expect(first.body.configs.map((each: Json) => each.id)).toEqual(["0"]);
    const second = await ask(`${all}?pageSize=1&pageToken=${first.body.nextPageToken}`);
    expect(second.body).toEqual({ configs: [made] });
    expect(await ask(`${all}/1`, { method: "DELETE" })).toEqual({ status: 200, body: {} });
    expect(await ask(`${all}/1`, { method: "DELETE" })).toEqual({ status: 200, body: {} });
    expect((await ask(`${all}/1`)).body.error.details[0].reason).toBe("TASK_NOT_FOUND");
  });

  test.each([
    ["no address", {}, "url"],
    ["an address that the platform may not call", { url: "http://10.0.0.1/" }, "url"],
    ["a line break in the token", { url: "http://127.0.0.1/", token: "a\r\nx: y" }, "token"],
    [
      "a line break in the credentials",
      { url: "http://127.0.0.1/", authentication: { scheme: "Bearer", credentials: "a\r\nx: y" } },
      "authentication.credentials",
    ],
    [
      "a scheme of two words",
      { url: "http://127.0.0.1/", authentication: { scheme: "Bearer x" } },
      "authentication.scheme",
    ],
  ])("with %s are refused with the field's name", async (_, body, field) => {
    const id = await begin(scene, "ask", receiver.url("/any"));
    const init = { method: "POST", body: JSON.stringify(body) };
    const { status, body: answer } = await ask(`${id}/pushNotificationConfigs`, init);
    expect(status).toBe(400);
    expect(answer.error.details).toContainEqual(
      expect.objectContaining({ fieldViolations: [expect.objectContaining({ field })] }),
    );
  });

  test("are declared by the card", async () => {
    const card: Json = await (
      await fetch(`${scene.platform.url}/a2a/worker/.well-known/agent-card.json`)
    ).json();
    expect(card.capabilities.pushNotifications).toBe(true);
  });

  test("are for tasks that began with an A2A message, of the agent at the address", async () => {
    const { clients, transport } = scene.platform;
    expect(transport).toBeDefined();
    const draft = { agentId: "worker", description: "free work" };
    const { task } = await clients.tasks.createTask({ requestId: crypto.randomUUID(), draft });
    const init = { method: "POST", body: JSON.stringify({ url: receiver.url("/own") }) };
    const own = await ask(`${task?.id}/pushNotificationConfigs`, init);
    expect(own.body.error.details[0].reason).toBe("UNSUPPORTED_OPERATION");
    await introduce(scene.platform, "other");
    const id = await begin(scene, "ask", receiver.url("/any"));
    const answer = await fetch(`${scene.platform.url}/a2a/other/tasks/${id}/pushNotificationConfigs`, {
      headers: VERSION,
    });
    expect(answer.status).toBe(404);
  });
});

describe("a platform that ends before a delivery", () => {
  const receiver = new Receiver();
  const dataDir = mkdtempSync(join(tmpdir(), "depute-webhooks-"));
  afterAll(() => rmSync(dataDir, { recursive: true }));

  test("delivers the event after its next start, with the credentials, before later ones", async () => {
    const flags = ["--a2a-webhook-hosts", "127.0.0.1"];
    let isUp = false;
    const reply: Reply = (response) => (isUp ? response.writeHead(204).end() : response.destroy());
    const first = await startPlatform(flags, { dataDir });
    let taskId = "";
    try {
      await introduce(first, "worker");
      const message = { messageId: "1", role: "ROLE_USER", parts: [{ text: "hello" }] };
      const taskPushNotificationConfig = {
        url: receiver.url("/later", reply),
        authentication: { scheme: "Bearer", credentials: "sesame" },
      };
      const configuration = { returnImmediately: true, taskPushNotificationConfig };
      const call = { jsonrpc: "2.0", id: 1, method: "SendMessage", params: { message, configuration } };
      const answer = (await (await first.post("/a2a/worker", call, VERSION)).json()) as Json;
      taskId = answer.result.task.id;
      await first.clients.tasks.cancelTask({ taskId, reason: "enough" });
      await expect.poll(() => receiver.at("/later").length).toBeGreaterThan(0);
    } finally {
      await first.stop();
    }
    const before = receiver.at("/later").length;
    isUp = true;
    const second = await startPlatform(flags, { dataDir });
    try {
      await expect.poll(() => receiver.at("/later").length, { timeout: 10_000 }).toBe(before + 1);
      const { headers, body } = receiver.at("/later").at(-1) ?? { headers: {}, body: {} };
      expect(headers.authorization).toBe("Bearer sesame");
      expect(body.statusUpdate).toMatchObject({ taskId, status: { state: "TASK_STATE_CANCELED" } });
    } finally {
      await second.stop();
    }
  }, 60_000);
});

describe("the webhooks of another caller's task", () => {
  const ALICE = `${"A".repeat(42)}A`;
  const BOB = `${"B".repeat(42)}A`;
  const folder = mkdtempSync(join(tmpdir(), "depute-webhooks-"));
  afterAll(() => rmSync(folder, { recursive: true }));

  test("look absent", async () => {
    const file = join(folder, "credentials.json");
    const sha256 = (word: string) => createHash("sha256").update(word).digest("hex");
    const rows = [
      { principal: ALICE, sha256: sha256("alice") },
      { principal: BOB, sha256: sha256("bob") },
    ];
    writeFileSync(file, JSON.stringify(rows));
    const platform = await startPlatform([...HOSTS, "--auth", "required", "--credentials-file", file]);
    const transport = createGrpcJsTransport(new URL(platform.url).host);
    const ask = async (word: string, method: string, params: object): Promise<Json> => {
      const headers = { ...VERSION, authorization: `Bearer ${word}` };
      const body = { jsonrpc: "2.0", id: 1, method, params };
      return (await platform.post("/a2a/worker", body, headers)).json() as Json;
    };
    try {
      const headers = { authorization: "Bearer alice" };
      const agent = { id: "worker", version: "1" };
      await clientsOver(transport).agents.registerAgent({ requestId: "1", agent }, { headers });
      const url = "http://127.0.0.1:9/";
      const message = { messageId: "1", role: "ROLE_USER", parts: [{ text: "hello" }] };
      const taskPushNotificationConfig = { id: "hers", url };
      const configuration = { returnImmediately: true, taskPushNotificationConfig };
      const { result } = await ask("alice", "SendMessage", { message, configuration });
      const taskId = result.task.id;
      for (const [method, params] of [
        ["CreateTaskPushNotificationConfig", { taskId, url }],
        ["GetTaskPushNotificationConfig", { taskId, id: "hers" }],
        ["ListTaskPushNotificationConfigs", { taskId }],
        ["DeleteTaskPushNotificationConfig", { taskId, id: "hers" }],
      ] as const) {
        const refused = await ask("bob", method, params);
        expect(refused).toEqual(await ask("bob", method, { ...params, taskId: "none" }).then(named(taskId)));
        expect(refused.error.code).toBe(-32001);
      }
      const { result: kept } = await ask("alice", "ListTaskPushNotificationConfigs", { taskId });
      expect(kept.configs).toEqual([{ taskId, id: "hers", url }]);
    } finally {
      transport.close();
      await platform.stop();
    }
  }, 60_000);
});

/** Returns a function that puts a task's id in the place of `none` in an answer. */
function named(taskId: string) {
  return (answer: Json) => JSON.parse(JSON.stringify(answer).replaceAll('"none"', JSON.stringify(taskId)));
}
