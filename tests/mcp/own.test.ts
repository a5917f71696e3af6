import { generateKeypair } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import type { Client } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { introduce, type Json } from "../gateway/platform.ts";
import { connect, grant, type Revision } from "./holder.ts";
import { type McpPlatform, startPlatform } from "./platform.ts";

let platform: McpPlatform;
beforeAll(async () => {
  platform = await startPlatform({});
  await introduce(platform, "counter", [["count"]]);
  await introduce(platform, "idler", [["wait"]]);
  await introduce(platform, "asker");
  platform.work("counter", async (input) => ({ output: input }));
  platform.work("asker", async (_, { ask }) => ({
    output: { chosen: await ask("which?", { options: ["a", "b"] }) },
  }));
}, 60_000);
afterAll(() => platform.stop());

const RIGHT = { namespace: "docs", action: "read", resource: "/a" };

async function use(client: Client, name: string, args: Json = {}): Promise<Json> {
  const result = await client.callTool({ name, arguments: args });
  expect(JSON.parse((result.content as Json)[0].text)).toEqual(result.structuredContent);
  return result.structuredContent;
}

describe.each<Revision>(["2026-07-28", "2025-11-25"])("Depute as an MCP server, revision %s", (revision) => {
  const client = () => connect(`${platform.url}/mcp`, revision);

  test("has the tools by which a model delegates", async () => {
    const { tools } = await (await client()).listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      "discover",
      "delegate",
      "watch",
      "answer",
      "cancel",
      "verify",
      "attenuate",
    ]);
  });

  test("finds an agent, delegates a task to it, and returns its result", async () => {
    const model = await client();
    const { capabilities } = await use(model, "discover", { query: "does count" });
    expect(capabilities).toContainEqual(expect.objectContaining({ agent: "counter", id: "count" }));
    const handed = await use(model, "delegate", { agent: "counter", capability: "count", input: { to: 3 } });
    const watched = await use(model, "watch", { task: handed.task, wait_ms: 10_000 });
    expect(watched).toMatchObject({
      task: handed.task,
      status: "completed",
      agent: "counter",
      output: { to: 3 },
    });
  });

  test("answers the question of a task", async () => {
    const model = await client();
    const { task } = await use(model, "delegate", { agent: "asker", description: "ask" });
    const statusOf = async () => (await use(model, "watch", { task })).status;
    await expect.poll(statusOf, { timeout: 10_000 }).toBe("input_required");
    const { question } = await use(model, "watch", { task });
    expect(question).toEqual({ prompt: "which?", details: { options: ["a", "b"] }, asks_for: "input" });
    await use(model, "answer", { task, value: "b" });
    expect(await use(model, "watch", { task, wait_ms: 10_000 })).toMatchObject({ output: { chosen: "b" } });
    const again = await model.callTool({ name: "answer", arguments: { task, value: "a" } });
    expect(again).toMatchObject({ isError: true, structuredContent: { reason: "TASK_STATE_CONFLICT" } });
  });

  test("shows tasks, their artifacts and their checks as resources", async () => {
    const model = await client();
    const { task } = await use(model, "delegate", {
      ...{ agent: "counter", capability: "count", input: { to: 3 } },
      wait_ms: 10_000,
    });
    const uri = `depute://tasks/${task}`;
    const { resources } = await model.listResources();
    expect(resources[0]).toEqual({
      uri,
      name: task,
      description: "counter: count",
      mimeType: "application/json",
    });
    const read = async (address: string) => {
      const { contents } = await model.readResource({ uri: address });
      expect(contents).toHaveLength(1);
      return JSON.parse((contents[0] as Json).text);
    };
    expect(await read(uri)).toMatchObject({ task, status: "completed", output: { to: 3 } });
    expect(await read(`${uri}/artifacts`)).toMatchObject({
      task,
      artifacts: [{ artifactId: "result", parts: [{ data: { to: 3 } }] }],
    });
    expect(await read(`${uri}/verification`)).toEqual({ task });
    const { resourceTemplates } = await model.listResourceTemplates();
    expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toContain(
      "depute://tasks/{task}/artifacts",
    );
  });

  test.each([
    "depute://tasks/none",
    "depute://tasks/none/artifacts",
    "depute://tasks/none/secrets",
    "depute://sessions/none/transcript",
    "depute://agents/counter",
    "file:///etc/passwd",
    "nonsense",
  ])("has no resource %s", async (uri) => {
    const model = await client();
    await expect(model.readResource({ uri })).rejects.toMatchObject({ code: -32602 });
  });

  test("has prompts for the main jobs", async () => {
    const model = await client();
    const { prompts } = await model.listPrompts();
    expect(prompts.map(({ name }) => name)).toEqual(["delegate", "follow", "verify"]);
    const { messages } = await model.getPrompt({ name: "delegate", arguments: { work: "count words" } });
    expect(messages).toMatchObject([
      { role: "user", content: { text: expect.stringContaining("count words") } },
    ]);
    await expect(model.getPrompt({ name: "delegate", arguments: {} })).rejects.toMatchObject({
      code: -32602,
    });
    await expect(model.getPrompt({ name: "none" })).rejects.toMatchObject({ code: -32602 });
  });

  test("cancels a queued task", async () => {
    const model = await client();
    const { task, status } = await use(model, "delegate", { agent: "idler", capability: "wait", input: {} });
    expect(status).toBe("pending");
    expect(await use(model, "cancel", { task, reason: "enough" })).toMatchObject({
      task,
      status: "cancelled",
    });
  });

  test("attenuates a token without its private key", async () => {
    const model = await client();
    const holder = await grant(platform, [["docs", "read", "/project/**"]]);
    const worker = generateKeypair(engine).principal.id;
    const block = {
      token: holder.token,
      delegatee: worker,
      capabilities: [{ namespace: "docs", action: "read", resource: "/project/plan.txt" }],
      max_budget_microcents: 10,
    };
    const { sign, attenuation } = await use(model, "attenuate", block);
    const signature = engine.sign(Buffer.from(sign, "base64url"), holder.keypair.privateKey);
    const attenuated = await use(model, "attenuate", {
      ...block,
      attenuator: attenuation.attenuator,
      delegation_id: attenuation.delegationId,
      contract: attenuation.contractId,
      signature: Buffer.from(signature).toString("base64url"),
    });
    const inspected = await platform.clients.tokens.inspectToken({
      token: { token: attenuated.token, format: "delegateos-sjt-v1" },
    });
    expect(inspected).toMatchObject({ delegatee: worker, result: { case: "scope" } });
  });

  test.each([
    ["discover", { querry: "count" }, ["/querry"]],
    [
      "delegate",
      { agent: "counter", capability: "count", input: {}, "wait/ms": 1, max: 2 },
      ["/wait~1ms", "/max"],
    ],
    [
      "attenuate",
      { token: "x", delegatee: "y", capabilities: [{ ...RIGHT, limit: 1 }] },
      ["/capabilities/0"],
    ],
  ])("refuses unknown arguments of a tool: %s %j", async (name, args, paths) => {
    const before = await platform.clients.tasks.listTasks({});
    const result: Json = await (await client()).callTool({ name, arguments: args });
    expect(result).toMatchObject({ isError: true, structuredContent: { reason: "INVALID_REQUEST" } });
    expect(result.structuredContent.violations.map(({ path }: Json) => path)).toEqual(paths);
    expect((await platform.clients.tasks.listTasks({})).tasks).toHaveLength(before.tasks.length);
  });

  test.each([
    ["watch", { task: "nothing" }, "TASK_NOT_FOUND"],
    ["watch", {}, "INVALID_REQUEST"],
    ["delegate", { agent: "nobody", capability: "count" }, "AGENT_NOT_FOUND"],
    ["verify", { attestation: "att_000000000000" }, "ATTESTATION_NOT_FOUND"],
    ["verify", {}, "INVALID_REQUEST"],
    ["attenuate", { token: "x", delegatee: "y" }, "TOKEN_MALFORMED"],
  ])("reports an error to the model: %s %j", async (name, args, reason) => {
    const result = await (await client()).callTool({ name, arguments: args });
    expect(result).toMatchObject({ isError: true, structuredContent: { reason } });
  });
});
