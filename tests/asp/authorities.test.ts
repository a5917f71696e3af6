import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { type Platform, startPlatform } from "./platform.ts";
import { type Document, refusalOf, Stranger, uuid7 } from "./stranger.ts";

/** This file tests which agents may use which names on ASP. The agents share no code with the platform. */

const running: { stop(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of running.splice(0)) await one.stop();
});

async function platform(...flags: string[]): Promise<Platform> {
  const started = await startPlatform(flags);
  running.push(started);
  return started;
}

const SERVICE = "depute.registry.v1.AuthorityService";
const grant = (by: Stranger, authority: string, { x: principal }: Stranger) =>
  by.call(`${SERVICE}/CreateAuthorityGrant`, { requestId: uuid7(), authority, principal }, true);

test("two companies each have an agent /alpha, and each name leads to its own company's agent", async () => {
  const { url } = await platform();
  const acme = new Stranger(url, "acme-alpha", "agent://acme.com/desk/alpha");
  const globex = new Stranger(url, "globex-alpha", "agent://globex.com/desk/alpha");
  const carol = new Stranger(url, "carol", "agent://carol.example/desk/carol");
  for (const one of [acme, globex, carol]) expect((await one.register()).status).toBe(200);

  for (const one of [acme, globex]) {
    const card = await carol.get(`/v1/asp/agents/${encodeURIComponent(one.uri)}/card`);
    expect((card.body.signingPublicKey as Document).x).toBe(one.x);
    const other = one === acme ? globex : acme;
    const invited = await carol.invite(one.uri);
    expect(invited.status).toBe(201);
    const sessionId = String(invited.body.sessionId);
    expect(refusalOf(await other.say(sessionId, "ACCEPT", { referenceId: "inv" }))).toEqual([
      403,
      "SESSION_NOT_ALLOWED",
      "not_a_participant",
    ]);
    expect((await one.say(sessionId, "ACCEPT", { referenceId: "inv" })).status).toBe(201);
  }
});

test("an authority belongs to its company", async () => {
  const { url } = await platform();
  const acme = new Stranger(url, "alpha", "agent://acme.com/desk/alpha");
  const bob = new Stranger(url, "bob", "agent://bob.example/desk/bob");
  for (const one of [acme, bob]) expect((await one.register()).status).toBe(200);
  const thief = (uri: string) => new Stranger(url, "thief", uri);

  const takenUri = await thief("agent://acme.com/desk/beta").register();
  expect(refusalOf(takenUri)).toEqual([403, "CALLER_NOT_ALLOWED"]);
  expect(takenUri.body.message).toContain("the authority acme.com belongs to another principal");
  expect(refusalOf(await thief("agent://ACME.com/desk/beta").register())).toEqual([400, "INVALID_REQUEST"]);
  expect(refusalOf(await thief("agent://acme.com./desk/beta").register())).toEqual([400, "INVALID_REQUEST"]);
  // An agent whose card has no key cannot send messages, and must not take another agent's name.
  const keyless = { principal: "", card: { agentId: "agent://acme.com/desk/beta", name: "beta" } };
  expect(refusalOf(await thief("").register(keyless))).toEqual([403, "CALLER_NOT_ALLOWED"]);
  // An agent that is registered under another name cannot change to this name.
  const moved = { card: { agentId: "agent://acme.com/desk/bob", name: "bob" } };
  expect(refusalOf(await bob.register(moved))).toEqual([403, "CALLER_NOT_ALLOWED"]);
  // The thief cannot send messages under the name either.
  expect(refusalOf(await thief("agent://acme.com/desk/alpha").invite(bob.uri))).toEqual([
    400,
    "SESSION_INTEGRITY_VIOLATION",
    "bad_signature",
  ]);
  expect(refusalOf(await thief("agent://acme.com/desk/beta").invite(bob.uri))).toEqual([
    404,
    "AGENT_NOT_FOUND",
    undefined,
  ]);
});

test("a sender without a card is not an ASP agent", async () => {
  const { url } = await platform();
  const bob = new Stranger(url, "bob", "agent://bob.example/desk/bob");
  await bob.register();
  const bare = new Stranger(url, "bare", "agent://bare.example/desk/bare");
  const { card: _card, ...record } = { card: 0, id: bare.id, principal: bare.x };
  const registered = await bare.call("depute.registry.v1.AgentService/RegisterAgent", {
    requestId: uuid7(),
    agent: record,
  });
  expect(registered.status).toBe(200);
  expect(refusalOf(await bare.invite(bob.uri))).toEqual([404, "AGENT_NOT_FOUND", undefined]);
  expect(refusalOf(await bob.invite(bare.uri))[1]).toBe("AGENT_NOT_FOUND");
});

test("one principal is one party", async () => {
  const { url } = await platform();
  const [left, right] = ["left", "right"].map(
    (name) => new Stranger(url, name, `agent://both.example/desk/${name}`, "one seed"),
  ) as [Stranger, Stranger];
  const bob = new Stranger(url, "bob", "agent://bob.example/desk/bob");
  for (const one of [left, right, bob]) expect((await one.register()).status).toBe(200);
  expect(refusalOf(await left.invite(right.uri))).toEqual([403, "SESSION_NOT_ALLOWED", "same_principal"]);
  const sessionId = String((await left.invite(bob.uri)).body.sessionId);
  await bob.say(sessionId, "ACCEPT", { referenceId: "inv" });
  for (const one of [left, bob]) expect((await one.introduce(sessionId)).status).toBe(201);
  await left.say(sessionId, "OBSERVE", {});
  const delegation = { delegationId: "del", targetAgent: right.uri, scope: "Decide.", authority: "full" };
  expect(refusalOf(await bob.say(sessionId, "DELEGATE", delegation))).toEqual([
    403,
    "SESSION_NOT_ALLOWED",
    "same_principal",
  ]);
});

test("an operator's grant supersedes a squatter's first registration", async () => {
  const operator = new Stranger("", "operator", "", "operator");
  const { url } = await platform("--asp-authority-operators", operator.x);
  const boss = new Stranger(url, "operator", "", "operator");
  const squatter = new Stranger(url, "squatter", "agent://example.com/desk/sales");
  const owner = new Stranger(url, "owner", "agent://example.com/desk/sales");
  const bob = new Stranger(url, "bob", "agent://bob.example/desk/bob");
  for (const one of [squatter, bob]) expect((await one.register()).status).toBe(200);
  expect((await squatter.invite(bob.uri)).status).toBe(201);

  expect(refusalOf(await grant(owner, "example.com", owner))).toEqual([403, "CALLER_NOT_ALLOWED"]);
  const local = await owner.call(`${SERVICE}/CreateAuthorityGrant`, {
    requestId: uuid7(),
    authority: "example.com",
    principal: owner.x,
  });
  expect(refusalOf(local)).toEqual([403, "CALLER_NOT_ALLOWED"]);
  expect((await grant(boss, "example.com", owner)).status).toBe(200);

  expect(refusalOf(await squatter.invite(bob.uri))).toEqual([404, "AGENT_NOT_FOUND", undefined]);
  expect(refusalOf(await squatter.register())).toEqual([403, "CALLER_NOT_ALLOWED"]);
  expect((await owner.register()).status).toBe(200);
  expect((await owner.invite(bob.uri)).status).toBe(201);
  const { agents } = (await bob.get("/v1/asp/discover?capability=walk")).body as { agents: Document[] };
  expect(agents.map(({ signingPublicKey }) => (signingPublicKey as Document).x).sort()).toEqual(
    [owner.x, bob.x].sort(),
  );
});

test("the setting requires a grant for an authority, which can be revoked", async () => {
  const operator = new Stranger("", "operator", "", "operator");
  const { url } = await platform("--asp-authorities", "granted", "--asp-authority-operators", operator.x);
  const boss = new Stranger(url, "operator", "", "operator");
  const sales = new Stranger(url, "sales", "agent://example.com/desk/sales");
  const support = new Stranger(url, "support", "agent://example.com/desk/support");
  expect(refusalOf(await sales.register())).toEqual([403, "CALLER_NOT_ALLOWED"]);
  const request = { requestId: uuid7(), authority: "example.com", principal: sales.x };
  const granted = await boss.call(`${SERVICE}/CreateAuthorityGrant`, request, true);
  expect(granted.body.grant).toMatchObject({ source: "AUTHORITY_SOURCE_GRANTED", grantedBy: operator.x });
  expect(await boss.call(`${SERVICE}/CreateAuthorityGrant`, request, true)).toEqual(granted);
  expect((await sales.register()).status).toBe(200);
  // The holder of an authority may grant a name under it to another agent.
  expect((await grant(sales, "example.com", support)).status).toBe(200);
  expect((await support.register()).status).toBe(200);
  const listed = await boss.call(`${SERVICE}/ListAuthorityGrants`, { authority: "example.com" }, true);
  expect((listed.body.grants as Document[]).map(({ principal }) => principal).sort()).toEqual(
    [sales.x, support.x].sort(),
  );
  const takenAuthority = { requestId: uuid7(), authority: "example.com", principal: support.x };
  expect((await boss.call(`${SERVICE}/DeleteAuthorityGrant`, takenAuthority, true)).status).toBe(200);
  expect(refusalOf(await support.invite(sales.uri))).toEqual([404, "AGENT_NOT_FOUND", undefined]);
  expect(refusalOf(await support.register())).toEqual([403, "CALLER_NOT_ALLOWED"]);
});

test("a key that the domain publishes proves the authority, where configuration lists the host", async () => {
  const published: Record<string, Document> = {};
  const domain = createServer((request, response) => {
    const set = published[request.url ?? ""];
    response.statusCode = set === undefined ? 404 : 200;
    response.end(JSON.stringify(set ?? {}));
  });
  await new Promise<void>((resolve) => domain.listen(0, "127.0.0.1", resolve));
  const address = `127.0.0.1:${(domain.address() as AddressInfo).port}`;
  const { url } = await platform(
    "--asp-authority-hosts",
    address,
    "--asp-authority-keys",
    `http://${address}/{authority}.json`,
  );
  const owner = new Stranger(url, "owner", "agent://example.com/desk/owner");
  const thief = new Stranger(url, "thief", "agent://example.com/desk/thief");
  // Where a domain publishes its keys, an earlier registration of the name gives no permission to use it.
  expect(refusalOf(await thief.register())).toEqual([403, "CALLER_NOT_ALLOWED"]);
  published["/example.com.json"] = {
    keys: [
      { kty: "EC", crv: "P-256" },
      { ...owner.jwk, kid: "1" },
    ],
  };
  expect((await owner.register()).status).toBe(200);
  expect(refusalOf(await thief.register())).toEqual([403, "CALLER_NOT_ALLOWED"]);
  await new Promise((resolve) => domain.close(resolve));
  domain.closeAllConnections();
  expect(refusalOf(await thief.register())).toEqual([503, "DEPENDENCY_UNAVAILABLE"]);
  // After the owner's key was proven, the name no longer depends on the domain.
  expect((await owner.register({ description: "again" })).status).toBe(200);
});
