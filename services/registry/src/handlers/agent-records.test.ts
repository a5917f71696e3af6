import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import {
  AgentHealth,
  AgentSchema,
  AgentStatus,
  AgentVisibility,
} from "@depute/contracts/depute/registry/v1/agent_pb";
import { encodeHex } from "@depute/core";
import { sha256Hex } from "@depute/core/sha256";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { recordDigest } from "../rules/record-digest.ts";
import { capability } from "../testing/capability.ts";
import { ALICE, as, BOB, type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";
import { type Signer, signer, signStatement } from "../testing/statement.ts";

let platform: Platform;
let requests = 0;
beforeEach(async () => {
  platform = await startPlatform();
});
afterEach(() => platform.stop());

const newRequest = () => `request-${++requests}`;
function register(agent: Record<string, unknown>, principal = ALICE, options = as(principal)) {
  return platform.agents.registerAgent({ requestId: newRequest(), agent: { principal, ...agent } }, options);
}
const get = (id: string, caller = ALICE) =>
  platform.agents.getAgent({ agentId: id }, as(caller)).then(({ agent }) => agent);
const versionsOf = async (agentId: string) =>
  (await platform.agents.listAgentVersions({ agentId }, as(ALICE))).versions.map(({ agent }) => agent);

describe("versions", () => {
  it("are created by different content, and never change", async () => {
    await register({ id: "a", version: "1.0", description: "one" });
    const { agent } = await register({ id: "a", version: "1.1", description: "two" });
    expect(agent).toMatchObject({ revision: 2n, description: "two" });
    const ownAgent = create(AgentSchema, { id: "a", principal: ALICE, version: "1.1", description: "two" });
    expect(encodeHex(agent?.digest ?? new Uint8Array())).toBe(recordDigest(ownAgent, sha256Hex));
    expect(await versionsOf("a")).toMatchObject([
      { revision: 2n, version: "1.1", description: "two" },
      { revision: 1n, version: "1.0", description: "one" },
    ]);
    const [second, first] = await versionsOf("a");
    for (const name of [
      { case: "revision" as const, value: 1n },
      { case: "version" as const, value: "1.0" },
      { case: "digest" as const, value: first?.digest ?? new Uint8Array() },
    ]) {
      const { version } = await platform.agents.getAgentVersion({ agentId: "a", name }, as(ALICE));
      expect(version?.agent).toEqual(first);
    }
    expect(second?.digest).not.toEqual(first?.digest);
  });

  it("are not created by equal content, heartbeats or a new status", async () => {
    await register({ id: "a", description: "one" });
    await register({ id: "a", description: "one" });
    await platform.agents.heartbeatAgent({ agentId: "a" }, as(ALICE));
    await platform.agents.setAgentStatus({ agentId: "a", status: AgentStatus.DEPRECATED }, as(ALICE));
    expect(await versionsOf("a")).toHaveLength(1);
  });

  it("refuse different content under their name and leave the record unchanged", async () => {
    await register({ id: "a", version: "1.0", description: "one" });
    const before = await get("a");
    expect(await refusal(register({ id: "a", version: "1.0", description: "two" }))).toMatchObject({
      reason: "AGENT_VERSION_EXISTS",
      metadata: { agent: "a", version: "1.0" },
    });
    expect(await get("a")).toEqual(before);
    expect(await versionsOf("a")).toHaveLength(1);
  });

  it("become current again when their content is registered again", async () => {
    await register({ id: "a", version: "1.0" });
    await register({ id: "a", version: "2.0" });
    expect((await register({ id: "a", version: "1.0" })).agent).toMatchObject({ revision: 1n });
    expect((await register({ id: "a", version: "3.0" })).agent).toMatchObject({ revision: 3n });
  });

  it("are listed in pages, latest first", async () => {
    for (const description of ["one", "two", "three"]) await register({ id: "a", description });
    const sequences: bigint[] = [];
    let pageToken = "";
    do {
      const page = await platform.agents.listAgentVersions(
        { agentId: "a", pageSize: 1, pageToken },
        as(ALICE),
      );
      sequences.push(...page.versions.map(({ agent }) => agent?.revision ?? 0n));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(sequences).toEqual([3n, 2n, 1n]);
  });

  it("are named in the error if they do not exist", async () => {
    await register({ id: "a" });
    const name = { case: "version" as const, value: "9" };
    expect(await refusal(platform.agents.getAgentVersion({ agentId: "a", name }))).toMatchObject({
      reason: "AGENT_VERSION_NOT_FOUND",
      metadata: { agent: "a", version: "9" },
    });
  });
});

describe("SetAgentStatus", () => {
  it("deprecates an agent: calls by id find it, lists only on request, with the message", async () => {
    await register({ id: "a" });
    await platform.agents.publishCapabilities(
      { requestId: newRequest(), agentId: "a", capabilities: [capability("sum")] },
      as(ALICE),
    );
    const call = { agentId: "a", status: AgentStatus.DEPRECATED, message: "use b" };
    const { agent } = await platform.agents.setAgentStatus(call, as(ALICE));
    expect(agent).toMatchObject({ status: AgentStatus.DEPRECATED, statusMessage: "use b" });
    expect((await platform.discovery.discoverCapabilities({})).capabilities).toEqual([]);
    const agentCapabilities = await platform.discovery.discoverCapabilities({ agentId: "a" });
    expect(agentCapabilities.capabilities).toHaveLength(1);
    expect(await platform.discovery.resolveCapability({ capabilityId: "a/sum" })).toMatchObject({
      agentId: "a",
    });
    const listed = await platform.agents.listAgents({ status: AgentStatus.DEPRECATED });
    expect(listed.agents.map(({ id }) => id)).toEqual(["a"]);
    expect((await register({ id: "a" })).agent).toMatchObject({
      status: AgentStatus.ACTIVE,
      statusMessage: "",
    });
  });

  it("refuses other callers and the status REMOVED", async () => {
    await register({ id: "a" });
    const status = AgentStatus.DEPRECATED;
    expect(await refusal(platform.agents.setAgentStatus({ agentId: "a", status }, as(BOB)))).toMatchObject({
      reason: "CALLER_NOT_ALLOWED",
    });
    const removing = platform.agents.setAgentStatus({ agentId: "a", status: AgentStatus.REMOVED }, as(ALICE));
    expect(await refusal(removing)).toMatchObject({ reason: "INVALID_REQUEST", fields: ["status"] });
  });

  it("also sees the status of DeregisterAgent", async () => {
    await register({ id: "a" });
    await platform.agents.deregisterAgent({ agentId: "a", message: "retired" }, as(ALICE));
    expect(await get("a")).toMatchObject({ status: AgentStatus.REMOVED, statusMessage: "retired" });
  });
});

describe("instances", () => {
  const manifest = { id: "a", systemPrompt: "Plan.", allowedAgents: ["b"], delegateRules: {} };

  it("inherit absent members from their base, also after it changes", async () => {
    await register({ id: "a", description: "base", organization: "acme", tags: ["x"], manifest });
    await register({ id: "a:1", displayName: "one", tags: ["y"], leaseDuration: durationFromMs(1_000) });
    expect(await get("a:1")).toMatchObject({
      displayName: "one",
      description: "base",
      organization: "acme",
      tags: ["y"],
      manifest: { id: "a", allowedAgents: ["b"] },
      leaseDuration: durationFromMs(1_000),
    });
    await register({ id: "a", description: "changed" });
    const changed = await get("a:1");
    expect(changed).toMatchObject({ description: "changed", organization: "", tags: ["y"] });
    expect(changed?.manifest).toBeUndefined();
    expect(await versionsOf("a:1")).toHaveLength(1);
  });

  it("have the visibility of their base", async () => {
    await register({ id: "a", visibility: AgentVisibility.NAMED });
    await register({ id: "a:1", visibility: AgentVisibility.PUBLIC });
    expect(await refusal(get("a:1", BOB))).toMatchObject({ reason: "AGENT_NOT_FOUND" });
    await register({ id: "a" });
    expect(await get("a:1", BOB)).toMatchObject({ id: "a:1" });
  });

  it("are removed with their base, and register again only after it", async () => {
    await register({ id: "a" });
    await register({ id: "a:1" });
    await platform.agents.deregisterAgent({ agentId: "a", message: "retired" }, as(ALICE));
    expect(await get("a:1")).toMatchObject({ status: AgentStatus.REMOVED, statusMessage: "retired" });
    expect(await refusal(register({ id: "a:1" }))).toMatchObject({ fields: ["agent.id"] });
    await register({ id: "a" });
    expect((await register({ id: "a:1" })).agent).toMatchObject({ status: AgentStatus.ACTIVE });
  });

  it("are found by the current search keys of their base", async () => {
    await register({ id: "a", tags: ["Fast"] });
    await register({ id: "a:1" });
    await platform.agents.publishCapabilities(
      { requestId: newRequest(), agentId: "a:1", capabilities: [capability("sum")] },
      as(ALICE),
    );
    const agentsWithTag = async (tag: string) =>
      (await platform.discovery.discoverCapabilities({ tags: [tag] })).capabilities.length;
    expect(await agentsWithTag("fast")).toBe(1);
    await register({ id: "a", tags: ["slow"] });
    expect(await agentsWithTag("fast")).toBe(0);
    expect(await agentsWithTag("slow")).toBe(1);
  });
});

describe("a registration statement", () => {
  let key: Signer;
  beforeEach(() => {
    key = signer();
  });
  const agentOf = (parts: Record<string, unknown> = {}) =>
    create(AgentSchema, { id: "a", principal: key.principal, ...parts });
  const claims = (agent = agentOf(), more: Record<string, unknown> = {}) => ({
    sub: agent.id,
    digest: recordDigest(agent, sha256Hex),
    aud: platform.publicUrl,
    iat: platform.clock.now() / 1000,
    ...more,
  });
  const call = (statement: string, agent = agentOf()) =>
    platform.agents.registerAgent({ requestId: newRequest(), agent, statement }, as(BOB));

  it("lets another caller register the content that the key signed", async () => {
    const { agent } = await call(signStatement(key, claims()));
    expect(agent).toMatchObject({ id: "a", principal: key.principal, revision: 1n });
  });

  it("is required from another caller", async () => {
    expect(await refusal(call(""))).toMatchObject({ reason: "CALLER_NOT_ALLOWED" });
  });

  it.each<[string, () => string]>([
    ["another content", () => signStatement(key, claims(agentOf({ description: "x" })))],
    ["another agent", () => signStatement(key, claims(agentOf(), { sub: "b" }))],
    ["another platform", () => signStatement(key, claims(agentOf(), { aud: "https://elsewhere" }))],
    ["another key", () => signStatement(signer(), claims())],
    ["another kind of object", () => signStatement(key, claims(), { typ: "dpop+jwt" })],
    ["no signature at all", () => signStatement(key, claims(), { alg: "none" })],
    ["extensions", () => signStatement(key, claims(), { crit: ["exp"] })],
    ["long ago", () => signStatement(key, claims(agentOf(), { iat: platform.clock.now() / 1000 - 301 }))],
    ["the future", () => signStatement(key, claims(agentOf(), { iat: platform.clock.now() / 1000 + 301 }))],
    ["no time", () => signStatement(key, claims(agentOf(), { iat: "now" }))],
    ["no form", () => "a.b"],
    ["no JSON", () => signStatement(key, claims()).replace(/^[^.]*/, "AAAA")],
  ])("of %s is refused", async (_, statement) => {
    expect(await refusal(call(statement()))).toMatchObject({
      reason: "SIGNATURE_INVALID",
      fields: ["statement"],
    });
    expect(await refusal(get("a"))).toMatchObject({ reason: "AGENT_NOT_FOUND" });
  });

  it("does not restore a record that was replaced later", async () => {
    const old = signStatement(key, claims());
    await call(old);
    platform.clock.advance(10_000);
    const changed = agentOf({ description: "new" });
    await call(signStatement(key, claims(changed)), changed);
    expect(await refusal(call(old))).toMatchObject({ reason: "SIGNATURE_INVALID" });
    expect(await get("a")).toMatchObject({ description: "new" });
  });

  it("is required from the caller without credentials, too, if the setting says so", async () => {
    await platform.stop();
    platform = await startPlatform(["--registration-proof", "required"]);
    const agent = agentOf();
    const open = platform.agents.registerAgent({ requestId: newRequest(), agent });
    expect(await refusal(open)).toMatchObject({ reason: "CALLER_NOT_ALLOWED", fields: ["statement"] });
    const statement = signStatement(key, claims(agent));
    await platform.agents.registerAgent({ requestId: newRequest(), agent, statement });
    await platform.agents.registerAgent({ requestId: newRequest(), agent: { id: "keyless" } });
  });
});

describe("a record", () => {
  it("stores a card without its trust members, and facts of the other protocols", async () => {
    const card = {
      agentId: "agent://acme.com/sales/a",
      name: "A",
      trustScore: 100,
      trustLevel: 4,
      trustComponents: { identityVerification: 100 },
      signingPublicKey: { kty: "OKP", crv: "Ed25519", x: ALICE },
    };
    const nekte = { endpoint: "https://acme.com/nekte", auth: "bearer", budgetSupport: true };
    const delegation = { delegationPolicy: { acceptsDelegation: true, maxChainDepth: 3n } };
    await register({ id: "a", card, nekte, delegation });
    const agent = await get("a");
    expect(agent).toMatchObject({ card: { name: "A" }, nekte, delegation });
    expect(agent?.card?.trustScore).toBeUndefined();
    expect(agent?.card?.trustLevel).toBeUndefined();
    expect(agent?.card?.trustComponents).toBeUndefined();
  });

  it.each<[string, Record<string, unknown>, string]>([
    ["a malformed URI", { card: { agentId: "acme.com/a", name: "A" } }, "agent.card.agent_id"],
    ["a URI without a unit", { card: { agentId: "agent://acme.com", name: "A" } }, "agent.card.agent_id"],
    [
      "another's signing key",
      {
        card: {
          agentId: "agent://d/u/n",
          name: "A",
          signingPublicKey: { kty: "OKP", crv: "Ed25519", x: BOB },
        },
      },
      "agent.card.signing_public_key",
    ],
    ["a malformed endpoint", { nekte: { endpoint: "nowhere" } }, "agent.nekte.endpoint"],
    ["viewers of a public agent", { visibleTo: ["b"] }, "agent"],
    ["an empty tag", { tags: [""] }, "agent.tags[0]"],
    ["members of no organization", { visibility: AgentVisibility.ORGANIZATION }, "agent.organization"],
  ])("with %s is refused", async (_, parts, field) => {
    expect(await refusal(register({ id: "a", ...parts }))).toMatchObject({
      reason: "INVALID_REQUEST",
      fields: [field],
    });
  });

  it("is refused with an address outside the configured origins", async () => {
    await platform.stop();
    platform = await startPlatform(["--agent-endpoint-origins", "https://acme.com"]);
    await register({ id: "a", nekte: { endpoint: "https://acme.com/nekte" } });
    const call = register({ id: "b", delegation: { revocationEndpoint: "https://evil.com/r" } });
    expect(await refusal(call)).toMatchObject({
      reason: "INVALID_REQUEST",
      fields: ["agent.delegation.revocation_endpoint"],
    });
  });

  it("is refused if its overseers form a cycle", async () => {
    const overseen = (id: string, overseer: string) => ({
      id,
      manifest: { id, systemPrompt: "", overseer: { case: "overseerId", value: overseer } },
    });
    await register(overseen("b", "c"));
    await register(overseen("c", "d"));
    const refused = await refusal(register(overseen("d", "b")));
    expect(refused).toMatchObject({ reason: "INVALID_REQUEST", fields: ["agent.manifest.overseer"] });
    expect(refused.violations[0]?.description).toContain("d -> b -> c -> d");
    await register(overseen("d", "e"));
  });
});

describe("a mass expiry of leases", () => {
  it("keeps the agents in discovery as SUSPECT until they return or the guard releases", async () => {
    for (let i = 0; i < 12; i++) {
      await register({ id: `a${i}`, leaseDuration: durationFromMs(10_000) });
      await platform.agents.publishCapabilities(
        { requestId: newRequest(), agentId: `a${i}`, capabilities: [capability("sum")] },
        as(ALICE),
      );
    }
    platform.clock.advance(11_000);
    const capabilityCount = async () =>
      (await platform.discovery.discoverCapabilities({})).capabilities.length;
    expect(await capabilityCount()).toBe(12);
    expect(await get("a1")).toMatchObject({ health: AgentHealth.SUSPECT });
    const suspects = await platform.agents.listAgents({ health: AgentHealth.SUSPECT });
    expect(suspects.agents).toHaveLength(12);
    for (let i = 0; i < 11; i++) await platform.agents.heartbeatAgent({ agentId: `a${i}` }, as(ALICE));
    platform.clock.advance(1_000);
    expect(await capabilityCount()).toBe(11);
    expect(await get("a11")).toMatchObject({ health: AgentHealth.LOST });
  });
});
