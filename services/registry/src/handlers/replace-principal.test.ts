import { AgentChangeKind } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { as, BOB, type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";
import { type Signer, signer, signStatement } from "../testing/statement.ts";

let platform: Platform;
let requests = 0;
let old: Signer;
let next: Signer;
beforeEach(async () => {
  platform = await startPlatform();
  old = signer();
  next = signer();
});
afterEach(() => platform.stop());

const register = (agent: Record<string, unknown>, key = old) =>
  platform.agents.registerAgent({
    requestId: `request-${++requests}`,
    agent: { principal: key.principal, ...agent },
  });

/** Signs a statement as a client does. */
function statement(
  key: Signer,
  changed: Record<string, unknown> = {},
  header: Record<string, unknown> = {},
): string {
  const claims = {
    ...{ sub: "a", from: old.principal, to: next.principal, aud: platform.publicUrl },
    ...{ iat: platform.clock.now() / 1000, ...changed },
  };
  return signStatement(key, claims, { typ: "depute-key-replacement+jwt", ...header });
}

/** Calls as a principal that owns neither key. */
const replace = (more: Record<string, unknown> = {}) =>
  platform.agents.replacePrincipal(
    {
      ...{ agentId: "a", replaced: old.principal, principal: next.principal },
      ...{ replacedStatement: statement(old), principalStatement: statement(next), ...more },
    },
    as(BOB),
  );
const principalOf = async (id = "a") => (await platform.agents.getAgent({ agentId: id })).agent?.principal;

describe("ReplacePrincipal", () => {
  it("changes the principal and the card's key, and nothing else", async () => {
    const card = {
      ...{ agentId: "agent://acme.com/sales/a", name: "A" },
      signingPublicKey: { kty: "OKP", crv: "Ed25519", x: old.principal, kid: "first" },
    };
    const before = (await register({ id: "a", version: "1.0", organization: "acme", card })).agent;
    const cardBefore = await platform.agents.getAgentCard({ agentId: "a" });
    platform.clock.advance(5_000);
    const { agent } = await replace();
    expect(agent).toMatchObject({ principal: next.principal, version: "1.0", revision: 2n });
    expect(agent?.card?.signingPublicKey).toMatchObject({ x: next.principal });
    expect(agent?.card?.signingPublicKey?.kid).toBeUndefined();
    const { principal: _, card: __, revision: ___, digest: ____, updateTime: _____, ...same } = agent ?? {};
    expect(before).toMatchObject(same);
    const returned = await platform.agents.getAgentCard({ agentId: "a" });
    expect(returned.digest).not.toEqual(cardBefore.digest);
    expect(Buffer.from(returned.card).toString()).toContain(next.principal);
    expect(Buffer.from(returned.card).toString()).not.toContain(old.principal);
  });

  it("creates a version of the same name, which the new key may register again", async () => {
    await register({ id: "a", version: "1.0", organization: "acme" });
    await replace();
    const { versions } = await platform.agents.listAgentVersions({ agentId: "a" });
    expect(versions.map(({ agent }) => [agent?.revision, agent?.version, agent?.principal])).toEqual([
      [2n, "1.0", next.principal],
      [1n, "1.0", old.principal],
    ]);
    const versionReference = { agentId: "a", name: { case: "version" as const, value: "1.0" } };
    expect((await platform.agents.getAgentVersion(versionReference)).version?.agent?.revision).toBe(2n);
    const again = await register({ id: "a", version: "1.0", organization: "acme" }, next);
    expect(again.agent?.revision).toBe(2n);
    const other = register({ id: "a", version: "1.0", description: "other" }, next);
    expect(await refusal(other)).toMatchObject({ reason: "AGENT_VERSION_EXISTS" });
    expect(await refusal(register({ id: "a" }))).toMatchObject({ reason: "AGENT_EXISTS" });
    const { members } = await platform.organizations.listMembers({ organization: "acme" });
    expect(members.map(({ principal }) => principal).toSorted()).toEqual(
      [old.principal, next.principal].toSorted(),
    );
  });

  it("replaces the key of the instances, too", async () => {
    await register({ id: "a", description: "base" });
    await register({ id: "a:1" });
    await replace();
    expect((await platform.agents.getAgent({ agentId: "a:1" })).agent).toMatchObject({
      ...{ principal: next.principal, description: "base", revision: 2n },
    });
    expect((await register({ id: "a:1" }, next)).agent).toMatchObject({ revision: 2n });
    const one = { agentId: "a:1", replaced: next.principal, principal: old.principal };
    expect(await refusal(replace(one))).toMatchObject({ reason: "INVALID_REQUEST", fields: ["agent_id"] });
  });

  it("changes nothing on repetition, also with new statements", async () => {
    await register({ id: "a" });
    const { agent } = await replace();
    expect((await replace()).agent).toEqual(agent);
    platform.clock.advance(3_600_000);
    expect((await replace()).agent?.updateTime).toEqual(agent?.updateTime);
    expect((await platform.agents.listAgentVersions({ agentId: "a" })).versions).toHaveLength(2);
  });

  it("appears in watches", async () => {
    await register({ id: "a" });
    const { sequence: afterSequence } = await platform.agents.listAgents({});
    await replace();
    const stop = new AbortController();
    for await (const { change } of platform.agents.watchAgents({ afterSequence }, { signal: stop.signal })) {
      expect(change).toMatchObject({
        ...{ agentId: "a", kind: AgentChangeKind.UPDATED, agent: { principal: next.principal } },
      });
      break;
    }
    stop.abort();
  });

  it.each<[string, () => Record<string, unknown>]>([
    ["the new key alone", () => ({ replacedStatement: statement(next) })],
    ["the old key alone", () => ({ principalStatement: statement(old) })],
    ["another agent's", () => ({ replacedStatement: statement(old, { sub: "b" }) })],
    ["another platform's", () => ({ principalStatement: statement(next, { aud: "https://elsewhere" }) })],
    ["another new key's", () => ({ replacedStatement: statement(old, { to: signer().principal }) })],
    ["another old key's", () => ({ principalStatement: statement(next, { from: signer().principal }) })],
    [
      "of another kind",
      () => ({ replacedStatement: statement(old, {}, { typ: "depute-registration+jwt" }) }),
    ],
    [
      "of long ago",
      () => ({ replacedStatement: statement(old, { iat: platform.clock.now() / 1000 - 301 }) }),
    ],
    [
      "older than the record",
      () => ({ principalStatement: statement(next, { iat: platform.clock.now() / 1000 - 2 }) }),
    ],
  ])("refuses statements that are %s", async (_, more) => {
    await register({ id: "a" });
    expect(await refusal(replace(more()))).toMatchObject({ reason: "SIGNATURE_INVALID" });
    expect(await principalOf()).toBe(old.principal);
  });

  it("does not find agents of other keys", async () => {
    expect(await refusal(replace())).toMatchObject({ reason: "AGENT_NOT_FOUND" });
    await register({ id: "a" }, signer());
    expect(await refusal(replace())).toMatchObject({ reason: "AGENT_NOT_FOUND" });
  });

  describe("of an agent with a manifest", () => {
    const binding = (allowedTools: string[]) => ({ serverId: "s", scopes: [], allowedTools });
    const withTools = (id: string, tools: string[], key: Signer) =>
      register({ id, manifest: { id, mcpBindings: [binding(tools)] } }, key);
    const mayUse = async (principal: string, tool: string) =>
      (await platform.policy.checkToolAccess({ principal, serverId: "s", tool })).allowed;

    it("keeps the old key bound by the manifest", async () => {
      await withTools("a", ["read"], old);
      expect(await mayUse(next.principal, "write")).toBe(true);
      await replace();
      for (const { principal } of [old, next]) {
        expect([await mayUse(principal, "read"), await mayUse(principal, "write")]).toEqual([true, false]);
      }
    });

    it("adds no permission to a bound key, if owners may not widen", async () => {
      await platform.stop();
      platform = await startPlatform(["--bounds-operators", "the-operator"]);
      await withTools("b", ["read"], next);
      await withTools("a", ["read", "write"], old);
      expect(await refusal(replace())).toMatchObject({
        reason: "AGENT_BOUNDS_WIDENED",
        fields: ['agent.manifest.mcp_bindings["s"].allowed_tools["write"]'],
      });
      expect(await principalOf()).toBe(old.principal);
      await withTools("a", ["read"], old);
      await replace();
      expect(await principalOf()).toBe(next.principal);
    });
  });
});
