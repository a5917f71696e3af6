import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { clientsOver } from "@depute/client";
import { createGrpcJsTransport } from "@depute/grpc-js";
import { afterAll, beforeAll, describe, expect } from "vitest";
import { type Json, startPlatform, type TestPlatform } from "../../gateway/platform.ts";
import { call, HELLO, HOSTS, must } from "./must.ts";

describe("a platform that needs credentials", () => {
  const folder = mkdtempSync(join(tmpdir(), "depute-musts-"));
  const [alice, bob] = ["A", "B"].map((letter) => `${letter.repeat(42)}A`) as [string, string];
  let platform: TestPlatform;
  beforeAll(async () => {
    const file = join(folder, "credentials.json");
    const row = (principal: string, word: string) => ({
      principal,
      sha256: createHash("sha256").update(word).digest("hex"),
    });
    writeFileSync(file, JSON.stringify([row(alice, "alice"), row(bob, "bob")]));
    platform = await startPlatform([...HOSTS, "--auth", "required", "--credentials-file", file]);
    const transport = createGrpcJsTransport(new URL(platform.url).host);
    const headers = { authorization: "Bearer alice" };
    const agent = { id: "worker", version: "1" };
    await clientsOver(transport).agents.registerAgent({ requestId: "1", agent }, { headers });
    transport.close();
  }, 60_000);
  afterAll(async () => {
    await platform.stop();
    rmSync(folder, { recursive: true });
  });
  const as = (word: string, method: string, params: object) =>
    call(platform, method, params, { authorization: `Bearer ${word}` });
  const sendAs = async (word: string): Promise<string> => {
    const configuration = { returnImmediately: true };
    return (await as(word, "SendMessage", { message: HELLO, configuration })).body.result.task.id;
  };

  must([15, 16, 17], "the extended card needs credentials of a scheme of the public card", async () => {
    const card: Json = await (await fetch(`${platform.url}/a2a/worker/.well-known/agent-card.json`)).json();
    expect(card.capabilities.extendedAgentCard).toBe(true);
    expect(card.securitySchemes.bearer.httpAuthSecurityScheme.scheme).toBe("Bearer");
    expect((await call(platform, "GetExtendedAgentCard", {})).response.status).toBe(401);
    expect((await as("alice", "GetExtendedAgentCard", {})).body.result).toMatchObject({ name: "worker" });
  });

  must([65, 76], "every operation is refused without valid credentials", async () => {
    for (const [method, params] of [
      ["SendMessage", { message: HELLO }],
      ["SendStreamingMessage", { message: HELLO }],
      ["GetTask", { id: "x" }],
      ["ListTasks", {}],
      ["CancelTask", { id: "x" }],
      ["SubscribeToTask", { id: "x" }],
      ["ListTaskPushNotificationConfigs", { taskId: "x" }],
    ] as const) {
      expect([method, (await call(platform, method, params)).response.status]).toEqual([method, 401]);
      expect([method, (await as("mallory", method, params)).response.status]).toEqual([method, 401]);
    }
  });

  must([45, 66, 77, 78], "another caller's task looks like an unknown task, in every operation", async () => {
    const id = await sendAs("alice");
    const own = await sendAs("bob");
    const { body } = await as("bob", "ListTasks", {});
    expect(body.result.tasks.map((task: Json) => task.id)).toEqual([own]);
    const mask = (text: string, shown: string) => JSON.parse(text.replaceAll(shown, "<id>"));
    for (const [method, paramsOf] of [
      ["GetTask", (task: string) => ({ id: task })],
      ["CancelTask", (task: string) => ({ id: task })],
      ["SubscribeToTask", (task: string) => ({ id: task })],
      ["SendMessage", (task: string) => ({ message: { ...HELLO, taskId: task } })],
      ["CreateTaskPushNotificationConfig", (taskId: string) => ({ taskId, url: "http://127.0.0.1:9/" })],
      ["ListTaskPushNotificationConfigs", (taskId: string) => ({ taskId })],
    ] as const) {
      const none = crypto.randomUUID();
      const [foreign, absent] = [
        await as("bob", method, paramsOf(id)),
        await as("bob", method, paramsOf(none)),
      ];
      expect([method, foreign.body.error?.code]).toEqual([method, -32001]);
      expect(mask(JSON.stringify(foreign.body), id)).toEqual(mask(JSON.stringify(absent.body), none));
      expect(foreign.response.status).toBe(absent.response.status);
    }
  });
});

describe("the platform as a client of an agent elsewhere", () => {
  let platform: TestPlatform;
  beforeAll(async () => {
    platform = await startPlatform(["--tasks-outbound-hosts", "127.0.0.1"]);
  }, 60_000);
  afterAll(() => platform.stop());

  must([4, 5, 72, 84], "it calls the first usable address, and repeats version and tenant", async () => {
    const calls: { path: string; headers: IncomingHttpHeaders; body: Json }[] = [];
    const server = createServer(async (incoming, response) => {
      let text = "";
      for await (const chunk of incoming) text += chunk;
      const body = JSON.parse(text);
      calls.push({ path: incoming.url ?? "", headers: incoming.headers, body });
      const status = { state: "TASK_STATE_COMPLETED" };
      const result = { task: { id: "t", contextId: "c", status } };
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(`data: ${JSON.stringify({ jsonrpc: "2.0", id: body.id, result })}\n\n`);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const a2aCard = {
      name: "afar",
      capabilities: { streaming: true },
      supportedInterfaces: [
        { url: `${base}/other`, protocolBinding: "https://example.com/binding", protocolVersion: "1.0" },
        { url: `${base}/first`, protocolBinding: "JSONRPC", protocolVersion: "1.0", tenant: "seven" },
        { url: `${base}/second`, protocolBinding: "HTTP+JSON", protocolVersion: "1.0" },
      ],
    };
    await platform.clients.agents.registerAgent({ requestId: "1", agent: { id: "afar", a2aCard } });
    const draft = { agentId: "afar", description: "x" };
    for await (const _ of platform.clients.tasks.delegateTask({ requestId: "2", draft })) {
      // The stream ends with the task.
    }
    server.closeAllConnections();
    server.close();
    const [first] = calls;
    expect(first?.path).toBe("/first");
    expect(first?.headers["a2a-version"]).toBe("1.0");
    expect(first?.body).toMatchObject({ method: "SendStreamingMessage", params: { tenant: "seven" } });
  });
});
