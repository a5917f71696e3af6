import { AgentVisibility } from "@depute/contracts/depute/registry/v1/agent_pb";
import { AuthoritySource } from "@depute/contracts/depute/registry/v1/authority_service_pb";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ALICE, as, BOB, CAROL, type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";
import { signer, signStatement } from "../testing/statement.ts";

const { GRANTED, FIRST } = AuthoritySource;
const URI = "agent://example.com/desk/a";

let platform: Platform;
let requests = 0;
beforeEach(async () => {
  // A platform on which CAROL is the operator of authorities.
  platform = await startPlatform(["--asp-authority-operators", CAROL]);
});
afterEach(() => platform.stop());

const newRequest = () => `request-${++requests}`;
const register = (id: string, principal: string, uri: string, more: Record<string, unknown> = {}) =>
  platform.agents.registerAgent(
    { requestId: newRequest(), agent: { id, principal, card: { agentId: uri, name: id }, ...more } },
    as(principal),
  );
const idOf = async (uri: string, viewer = "") =>
  (await platform.agents.getAgentByUri({ uri, viewer })).agent?.id;
const grant = (caller: string, principal: string, requestId = newRequest()) =>
  platform.authorities.createAuthorityGrant({ requestId, authority: "example.com", principal }, as(caller));
const revoke = (caller: string, principal: string, requestId = newRequest()) =>
  platform.authorities.deleteAuthorityGrant({ requestId, authority: "example.com", principal }, as(caller));
const holders = async () =>
  (await platform.authorities.listAuthorityGrants({ authority: "example.com" })).grants.map(
    ({ principal, source }) => [principal, source],
  );

describe("the URI of an agent", () => {
  it("belongs to one agent until its removal", async () => {
    await register("a", ALICE, URI);
    expect((await refusal(register("b", ALICE, URI))).reason).toBe("AGENT_EXISTS");
    expect(await idOf(URI)).toBe("a");
    await platform.agents.deregisterAgent({ agentId: "a" }, as(ALICE));
    expect((await refusal(platform.agents.getAgentByUri({ uri: URI }))).reason).toBe("AGENT_NOT_FOUND");
    await register("b", ALICE, URI);
    expect(await idOf(URI)).toBe("b");
  });

  it("is free after the agent changes its URI or drops its card", async () => {
    await register("a", ALICE, URI);
    await register("a", ALICE, `${URI}2`);
    await register("b", ALICE, URI);
    expect([await idOf(URI), await idOf(`${URI}2`)]).toEqual(["b", "a"]);
    await platform.agents.registerAgent(
      { requestId: newRequest(), agent: { id: "b", principal: ALICE } },
      as(ALICE),
    );
    expect((await refusal(platform.agents.getAgentByUri({ uri: URI }))).reason).toBe("AGENT_NOT_FOUND");
  });

  it("stays the base's when an instance repeats it", async () => {
    await register("a", ALICE, URI);
    await register("a:1", ALICE, URI);
    expect(await idOf(URI)).toBe("a");
    await register("a:2", ALICE, `${URI}2`);
    expect(await idOf(`${URI}2`)).toBe("a:2");
  });

  it("does not reveal an agent to callers that may not see it", async () => {
    await register("a", ALICE, URI, { visibility: AgentVisibility.NAMED });
    expect(await idOf(URI, ALICE)).toBe("a");
    expect((await refusal(platform.agents.getAgentByUri({ uri: URI }, as(BOB)))).reason).toBe(
      "AGENT_NOT_FOUND",
    );
  });

  it("needs an authority in lower case", async () => {
    const { reason, fields } = await refusal(register("a", ALICE, "agent://Example.com/desk/a"));
    expect([reason, fields]).toEqual(["INVALID_REQUEST", ["agent.card.agent_id"]]);
  });
});

describe("the holder of an authority", () => {
  it("is the first principal, which cannot grant it to others", async () => {
    await register("a", ALICE, URI);
    const { reason, metadata, fields } = await refusal(register("b", BOB, `${URI}2`));
    expect([reason, metadata.authority, fields]).toEqual([
      "CALLER_NOT_ALLOWED",
      "example.com",
      ["agent.card.agent_id"],
    ]);
    await grant(ALICE, BOB);
    await register("b", BOB, `${URI}2`);
    expect(await holders()).toEqual([
      [ALICE, FIRST],
      [BOB, FIRST],
    ]);
  });

  it("is only the principal with an operator's grant", async () => {
    await register("a", ALICE, URI);
    expect((await refusal(grant(BOB, BOB))).reason).toBe("CALLER_NOT_ALLOWED");
    await grant(CAROL, BOB);
    expect((await refusal(platform.agents.getAgentByUri({ uri: URI }))).reason).toBe("AGENT_NOT_FOUND");
    expect((await refusal(grant(ALICE, ALICE))).reason).toBe("CALLER_NOT_ALLOWED");
    await register("b", BOB, URI);
    expect(await idOf(URI)).toBe("b");
    // The operator may replace a grant that came from a first registration.
    await grant(CAROL, ALICE);
    expect(await holders()).toEqual([
      [ALICE, GRANTED],
      [BOB, GRANTED],
    ]);
  });

  it("is granted once for each request id, and revoked by callers that may grant it", async () => {
    const first = await grant(CAROL, BOB, "one");
    platform.clock.advance(1000);
    expect(await grant(CAROL, BOB, "one")).toEqual(first);
    expect((await refusal(grant(CAROL, ALICE, "one"))).reason).toBe("REQUEST_ID_REUSED");
    expect((await grant(CAROL, BOB)).grant).toEqual(first.grant);
    expect((await refusal(revoke(ALICE, BOB))).reason).toBe("CALLER_NOT_ALLOWED");
    await revoke(CAROL, BOB);
    await revoke(CAROL, BOB);
    expect(await holders()).toEqual([]);
  });

  it("is listed for operators, holders and the platform", async () => {
    await grant(CAROL, BOB);
    const list = (caller: string) =>
      platform.authorities.listAuthorityGrants({ authority: "example.com" }, as(caller));
    expect((await list(BOB)).grants).toHaveLength(1);
    expect((await list(CAROL)).grants).toHaveLength(1);
    expect((await refusal(list(ALICE))).reason).toBe("CALLER_NOT_ALLOWED");
  });

  it("is the replacing key after a key replacement", async () => {
    const [old, next] = [signer(), signer()];
    const agent = { id: "a", principal: old.principal, card: { agentId: URI, name: "a" } };
    await platform.agents.registerAgent({ requestId: newRequest(), agent });
    platform.clock.advance(1000);
    const claims = {
      ...{ sub: "a", from: old.principal, to: next.principal, aud: platform.publicUrl },
      iat: platform.clock.now() / 1000,
    };
    const by = (key: typeof old) => signStatement(key, claims, { typ: "depute-key-replacement+jwt" });
    await platform.agents.replacePrincipal({
      ...{ agentId: "a", replaced: old.principal, principal: next.principal },
      ...{ replacedStatement: by(old), principalStatement: by(next) },
    });
    expect(await idOf(URI)).toBe("a");
    expect(await holders()).toEqual([[next.principal, FIRST]]);
  });
});
