import { generateKeyPairSync, sign } from "node:crypto";
import { DefaultAgentCardResolver } from "@a2a-js/sdk/client";
import { AgentVisibility } from "@depute/contracts/depute/registry/v1/agent_pb";
import { canonicalBytes } from "@depute/core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { capability, introduce, type Json, startPlatform, type TestPlatform } from "./platform.ts";

const ALICE = `${"A".repeat(42)}A`;

let platform: TestPlatform;
beforeAll(async () => {
  platform = await startPlatform();
  await introduce(platform, "analyst", [["sum"]]);
});
afterAll(() => platform.stop());

const PATH = "/agents/analyst/agent-card.json";
const get = (path: string, init: RequestInit = {}) => fetch(`${platform.url}${path}`, init);

test("an agent's card is read as a document, with the platform's signature and the DelegateOS member", async () => {
  const response = await get(PATH);
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe("application/json");
  expect(response.headers.get("cache-control")).toBe("private, no-cache");
  const card: Json = await response.json();
  expect(card).toMatchObject({
    name: "analyst",
    version: "1.2.0",
    url: `${platform.url}/nekte/analyst`,
    skills: [{ id: "sum", tags: ["nlp"] }],
    delegateos: {},
  });
  expect(card.signatures).toHaveLength(1);
  const { digest, card: same } = await platform.clients.agents.getAgentCard({ agentId: "analyst" });
  expect(response.headers.get("etag")).toBe(`"${Buffer.from(digest).toString("hex")}"`);
  expect(JSON.parse(Buffer.from(same).toString())).toEqual(card);
});

test("is not sent again to a client that has it, until it changes", async () => {
  const first = await get(PATH);
  await first.arrayBuffer();
  const etag = first.headers.get("etag") ?? "";
  const modified = first.headers.get("last-modified") ?? "";
  expect(Date.now() - Date.parse(modified)).toBeLessThan(600_000);
  const statuses: [Record<string, string>, number][] = [
    [{ "if-none-match": etag }, 304],
    [{ "if-none-match": `"other", W/${etag}` }, 304],
    [{ "if-none-match": '"other"' }, 200],
    [{ "if-modified-since": modified }, 304],
    [{ "if-modified-since": "Thu, 01 Jan 1970 00:00:00 GMT" }, 200],
    [{ "if-none-match": '"other"', "if-modified-since": modified }, 200],
  ];
  for (const [headers, status] of statuses) {
    const answer = await get(PATH, { headers });
    expect([headers, answer.status]).toEqual([headers, status]);
    if (status === 304) expect(await answer.text()).toBe("");
  }
  const head = await get(PATH, { method: "HEAD" });
  expect([head.status, await head.text(), head.headers.get("etag")]).toEqual([200, "", etag]);
  await platform.clients.agents.publishCapabilities({
    requestId: "more",
    agentId: "analyst",
    capabilities: [capability("sum"), capability("sort")],
  });
  const changed = await get(PATH, { headers: { "if-none-match": etag } });
  expect(changed.status).toBe(200);
  expect(await changed.json()).toMatchObject({ skills: [{ id: "sum" }, { id: "sort" }] });
});

test("an A2A client reads it", async () => {
  const card = await new DefaultAgentCardResolver().resolve(platform.url, PATH);
  expect(card).toMatchObject({ name: "analyst", version: "1.2.0" });
  expect(card.skills.map(({ id }) => id)).toContain("sum");
});

test("an invisible agent has no card", async () => {
  const agent = { id: "hidden", principal: ALICE, visibility: AgentVisibility.NAMED };
  await platform.clients.agents.registerAgent({ requestId: "hidden", agent });
  // The test calls as `local`, which sees everything.
  expect((await get("/agents/hidden/agent-card.json")).status).toBe(200);
  for (const path of ["/agents/nobody/agent-card.json", "/agents/analyst/agent-card.json?signer=owner"]) {
    const missing = await get(path);
    expect(missing.status).toBe(404);
    await missing.arrayBuffer();
  }
  const forged = await get("/agents/analyst/agent-card.json", {
    headers: { authorization: "Bearer nothing" },
  });
  expect(forged.status).toBe(401);
  for (const query of ["signer=me", "signer=owner&signer=platform", "signer=toString"]) {
    expect((await get(`${PATH}?${query}`)).status).toBe(400);
  }
});

test("the owner's signed card is returned on request", async () => {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const principal = publicKey.export({ format: "jwk" }).x ?? "";
  const card = { name: "Own", url: "https://acme.com/a2a", version: "3", delegateos: { principal } };
  const header = Buffer.from('{"alg":"EdDSA"}').toString("base64url");
  const message = `${header}.${Buffer.from(canonicalBytes(card)).toString("base64url")}`;
  const signature = sign(null, Buffer.from(message), privateKey).toString("base64url");
  const signed = { ...card, signatures: [{ protected: header, signature }] };
  await platform.clients.agents.registerAgent({
    requestId: "own",
    agent: { id: "own", principal, signedCard: Buffer.from(JSON.stringify(signed)) },
  });
  const ownCard = await get("/agents/own/agent-card.json?signer=owner");
  expect(await ownCard.json()).toEqual(signed);
  expect(await (await get("/agents/own/agent-card.json")).json()).toMatchObject({ name: "own" });
});
