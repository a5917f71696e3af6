import { AgentVisibility } from "@depute/contracts/depute/registry/v1/agent_pb";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ALICE, as, BOB, CAROL, type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";
import { signer, signStatement } from "../testing/statement.ts";

/** The tests' platform; its operator is CAROL. */
let platform: Platform;
let requests = 0;
const newRequest = () => `request-${++requests}`;
const OPERATOR = CAROL;

const register = (id: string, principal: string, organization = "", parts: Record<string, unknown> = {}) =>
  platform.agents.registerAgent(
    { requestId: newRequest(), agent: { id, principal, organization, ...parts } },
    as(principal),
  );
async function prove(organization: string, principal: string, requestId = newRequest(), caller = OPERATOR) {
  const request = { requestId, organization, principal };
  const { proof } = await platform.organizations.createOrganizationProof(request, as(caller));
  if (proof === undefined) throw new Error("no proof");
  return proof;
}
const revoke = async (id: string, caller = OPERATOR) =>
  (await platform.organizations.revokeOrganizationProof({ requestId: newRequest(), proofId: id }, as(caller)))
    .proof;
const affiliations = async (...agentIds: string[]) =>
  (await platform.organizations.batchGetAffiliations({ agentIds })).affiliations.map(
    ({ agentId, principal, organizations }) => [agentId, principal, organizations.join()],
  );
const members = async (organization: string) =>
  (await platform.organizations.listMembers({ organization })).members.map(({ principal }) => principal);

beforeEach(async () => {
  platform = await startPlatform(["--trust-operators", OPERATOR]);
});
afterEach(() => platform.stop());

describe("a proof", () => {
  it("is an affiliation of every agent of its principal, unlike a name in a record", async () => {
    await register("seller", ALICE, "acme");
    await register("second", ALICE, "invented");
    await register("claims", BOB, "acme");
    await prove("acme", ALICE);
    expect(await affiliations("seller", "second:1", "claims", "unknown")).toEqual([
      ["seller", ALICE, "acme"],
      ["second:1", ALICE, "acme"],
      ["claims", BOB, ""],
    ]);
  });

  it("is created once for any request id, and again after its revocation", async () => {
    const first = await prove("acme", ALICE, "same");
    expect(await prove("acme", ALICE, "same")).toEqual(first);
    expect(await prove("acme", ALICE)).toEqual(first);
    expect(await refusal(prove("other", ALICE, "same"))).toMatchObject({ reason: "REQUEST_ID_REUSED" });
    const ended = await revoke(first.id);
    expect(ended).toMatchObject({ id: first.id, revokedBy: OPERATOR });
    expect(ended?.revokeTime).toBeDefined();
    expect(await revoke(first.id)).toEqual(ended);
    expect((await prove("acme", ALICE)).id).not.toBe(first.id);
  });

  it("is listed for every caller, newest first, with revoked ones on request", async () => {
    const ended = await prove("acme", BOB);
    await revoke(ended.id);
    const [first, second] = [await prove("acme", ALICE), await prove("zeta", ALICE)];
    const list = async (parts: Record<string, unknown> = {}) => {
      const answer = await platform.organizations.listOrganizationProofs(parts, as(BOB));
      return { ids: answer.proofs.map(({ id }) => id), next: answer.nextPageToken };
    };
    expect((await list()).ids).toEqual([second.id, first.id]);
    expect((await list({ organization: "acme", includeRevoked: true })).ids).toEqual([first.id, ended.id]);
    expect((await list({ principal: BOB })).ids).toEqual([]);
    const page = await list({ pageSize: 1 });
    expect((await list({ pageSize: 1, pageToken: page.next })).ids).toEqual([first.id]);
  });

  it("is created and revoked only by operators", async () => {
    const { id } = await prove("acme", ALICE);
    const refused = { reason: "CALLER_NOT_ALLOWED" };
    expect(await refusal(prove("acme", BOB, newRequest(), ALICE))).toMatchObject(refused);
    expect(await refusal(revoke(id, ALICE))).toMatchObject(refused);
    const local = platform.organizations.createOrganizationProof({
      requestId: newRequest(),
      organization: "acme",
      principal: BOB,
    });
    expect(await refusal(local)).toMatchObject(refused);
    expect(await refusal(revoke("no-such-proof"))).toMatchObject({ reason: "ORGANIZATION_PROOF_NOT_FOUND" });
  });

  it("is limited to 16 organizations of one principal", async () => {
    for (let i = 0; i < 16; i++) await prove(`org-${i}`, ALICE);
    expect(await refusal(prove("one-more", ALICE))).toMatchObject({
      reason: "LIMIT_EXCEEDED",
      metadata: { limit: "organizations_of_principal", max: "16" },
    });
  });

  it("survives a restart", async () => {
    await register("seller", ALICE);
    await prove("acme", ALICE);
    await platform.restart();
    expect(await affiliations("seller")).toEqual([["seller", ALICE, "acme"]]);
  });

  it("moves to the key that replaces its principal, and is revoked there", async () => {
    const [old, next] = [signer(), signer()];
    const agent = { id: "a", principal: old.principal, organization: "acme" };
    await platform.agents.registerAgent({ requestId: newRequest(), agent });
    await prove("acme", old.principal);
    const replaced = { sub: "a", from: old.principal, to: next.principal, aud: platform.publicUrl };
    const say = (key: typeof old) =>
      signStatement(
        key,
        { ...replaced, iat: platform.clock.now() / 1000 },
        { typ: "depute-key-replacement+jwt" },
      );
    await platform.agents.replacePrincipal({
      ...{ agentId: "a", replaced: old.principal, principal: next.principal },
      ...{ replacedStatement: say(old), principalStatement: say(next) },
    });
    expect(await affiliations("a")).toEqual([["a", next.principal, "acme"]]);
    expect(await members("acme")).toEqual([next.principal]);
    const { proofs } = await platform.organizations.listOrganizationProofs({});
    expect(proofs.map(({ principal }) => principal)).toEqual([next.principal]);
    await revoke(proofs[0]?.id ?? "");
    expect(await affiliations("a")).toEqual([["a", next.principal, ""]]);
  });
});

describe("the members of a proven organization", () => {
  const inner = { visibility: AgentVisibility.ORGANIZATION };
  const isVisible = async (caller: string) =>
    (await platform.agents.listAgents({}, as(caller))).agents.some(({ id }) => id === "inner");

  it("exclude the members of an earlier impostor", async () => {
    await register("impostor", BOB, "acme");
    await prove("acme", ALICE);
    await register("inner", ALICE, "acme", inner);
    expect(await members("acme")).toEqual([ALICE]);
    expect(await isVisible(BOB)).toBe(false);
    expect(await refusal(register("impostor-2", BOB, "acme", inner))).toMatchObject({
      reason: "CALLER_NOT_ALLOWED",
    });
  });

  it("stay if the founder is proven", async () => {
    await register("inner", ALICE, "acme", inner);
    await platform.organizations.admitMember({ organization: "acme", principal: BOB }, as(ALICE));
    await prove("acme", ALICE);
    expect(await isVisible(BOB)).toBe(true);
  });

  it("end with the proof, and no later registration founds it again", async () => {
    await register("inner", ALICE, "acme", inner);
    const { id } = await prove("acme", ALICE);
    await platform.organizations.admitMember({ organization: "acme", principal: BOB }, as(ALICE));
    await revoke(id);
    expect(await members("acme")).toEqual([]);
    await register("late", BOB, "acme");
    expect(await members("acme")).toEqual([]);
    expect(await isVisible(BOB)).toBe(false);
  });
});

describe("without operators", () => {
  it("only the caller without credentials is an operator", async () => {
    await platform.stop();
    platform = await startPlatform();
    const request = { requestId: newRequest(), organization: "acme", principal: ALICE };
    expect(await refusal(platform.organizations.createOrganizationProof(request, as(ALICE)))).toMatchObject({
      reason: "CALLER_NOT_ALLOWED",
    });
    const { proof } = await platform.organizations.createOrganizationProof(request);
    expect(proof).toMatchObject({ organization: "acme", principal: ALICE, provenBy: "local" });
  });
});
