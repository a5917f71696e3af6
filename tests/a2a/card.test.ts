import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { verifyAgentCardSignature } from "@a2a-js/sdk";
import { DefaultAgentCardResolver } from "@a2a-js/sdk/client";
import { clientsOver } from "@depute/client";
import { AgentVisibility } from "@depute/contracts/depute/registry/v1/agent_pb";
import { AgentCardForm } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { createGrpcJsTransport } from "@depute/grpc-js";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { introduce, type Json, startPlatform, type TestPlatform } from "../gateway/platform.ts";
import { Scene } from "./scene.ts";

const ALICE = `${"A".repeat(42)}A`;

const scene = new Scene();
const path = (agent: string) => `/a2a/${agent}/.well-known/agent-card.json`;
const get = (agent: string, headers: Record<string, string> = {}) =>
  fetch(`${scene.platform.url}${path(agent)}`, { headers });

describe("a card", () => {
  test("names the agent's three addresses, skills and extensions", async () => {
    const { url } = scene.platform;
    const card: Json = await (await get("worker")).json();
    expect(card).toMatchObject({
      name: "worker",
      version: "1.2.0",
      supportedInterfaces: [
        { url: `${url}/a2a/worker`, protocolBinding: "JSONRPC", protocolVersion: "1.0" },
        { url: `${url}/a2a/worker`, protocolBinding: "HTTP+JSON", protocolVersion: "1.0" },
        { url: new URL(url).host, protocolBinding: "GRPC", tenant: "worker", protocolVersion: "1.0" },
      ],
      capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: false },
      skills: [{ id: "sum", name: "sum", description: "does sum", tags: ["nlp"] }],
    });
    for (const { uri } of card.capabilities.extensions) expect(uri).toMatch(/\/v\d+$/);
  });

  test.each([
    ["with capabilities", "worker"],
    ["without capabilities", "plain"],
  ])("of an agent %s has a signature that the official library verifies", async (_, agent) => {
    if (agent === "plain") await introduce(scene.platform, agent);
    const card = await new DefaultAgentCardResolver().resolve(scene.platform.url, path(agent));
    const { signingKey } = await scene.platform.clients.agents.getAgentCard({
      agentId: agent,
      form: AgentCardForm.A2A_1_0,
    });
    const { kid = "", x = "" } = signingKey ?? {};
    const verify = verifyAgentCardSignature(async (named) => {
      expect(named).toBe(kid);
      return { kty: "OKP", crv: "Ed25519", x };
    });
    await expect(verify(card)).resolves.toBeUndefined();
    // The library logs each signature that does not verify. The mock keeps these log lines out of the test's
    // output.
    vi.spyOn(console, "debug").mockImplementationOnce(() => {});
    await expect(verify({ ...card, version: "another" })).rejects.toThrow("No valid signatures");
  });

  test("is not sent again to a client that has it", async () => {
    const first = await get("worker");
    await first.arrayBuffer();
    expect(first.headers.get("cache-control")).toBe("private, max-age=60");
    const again = await get("worker", { "if-none-match": first.headers.get("etag") ?? "" });
    expect([again.status, await again.text()]).toEqual([304, ""]);
    expect((await get("nobody")).status).toBe(404);
  });
});

describe("a platform that needs credentials", () => {
  const folder = mkdtempSync(join(tmpdir(), "depute-a2a-"));
  const sha256 = createHash("sha256").update("sesame").digest("hex");
  const file = join(folder, "credentials.json");
  writeFileSync(file, JSON.stringify([{ principal: ALICE, sha256 }]));
  let closed: TestPlatform;
  beforeAll(async () => {
    closed = await startPlatform(["--auth", "required", "--credentials-file", file]);
    const transport = createGrpcJsTransport(new URL(closed.url).host);
    const headers = { authorization: "Bearer sesame" };
    const agent = { id: "worker", version: "1" };
    const { agents } = clientsOver(transport);
    await agents.registerAgent({ requestId: "1", agent }, { headers });
    const hidden = { id: "hidden", principal: ALICE, visibility: AgentVisibility.NAMED };
    await agents.registerAgent({ requestId: "2", agent: hidden }, { headers });
    transport.close();
  });
  afterAll(async () => {
    await closed.stop();
    rmSync(folder, { recursive: true });
  });

  const extended = (headers: Record<string, string> = {}) => {
    const body = { jsonrpc: "2.0", id: 1, method: "GetExtendedAgentCard" };
    return closed.post("/a2a/worker", body, { "a2a-version": "1.0", ...headers });
  };

  test("states how to send them", async () => {
    const card: Json = await (await fetch(`${closed.url}${path("worker")}`)).json();
    expect(card).toMatchObject({
      capabilities: { extendedAgentCard: true },
      securitySchemes: { bearer: { httpAuthSecurityScheme: { scheme: "Bearer" } } },
      securityRequirements: [{ schemes: { bearer: {} } }],
    });
  });

  test("hides the card of a hidden agent from a client without them", async () => {
    expect((await fetch(`${closed.url}${path("hidden")}`)).status).toBe(404);
    const headers = { authorization: "Bearer sesame" };
    expect((await fetch(`${closed.url}${path("hidden")}`, { headers })).status).toBe(200);
  });

  test("returns the extended card to callers with credentials", async () => {
    expect((await extended()).status).toBe(401);
    expect((await extended({ authorization: "Bearer wrong" })).status).toBe(401);
    const answer: Json = await (await extended({ authorization: "Bearer sesame" })).json();
    expect(answer.result).toMatchObject({ name: "worker" });
  });

  test("refuses every operation without them", async () => {
    const message = { messageId: "1", role: "ROLE_USER", parts: [{ text: "hello" }] };
    const sent = await closed.post(
      "/a2a/worker",
      { jsonrpc: "2.0", id: 1, method: "SendMessage", params: { message } },
      { "a2a-version": "1.0" },
    );
    expect(sent.status).toBe(401);
    const listed = await fetch(`${closed.url}/a2a/worker/tasks`, { headers: { "a2a-version": "1.0" } });
    expect(listed.status).toBe(401);
    expect(await listed.json()).toMatchObject({ error: { code: 401, status: "UNAUTHENTICATED" } });
  });
});
