import { AgentVisibility } from "@depute/contracts/depute/registry/v1/agent_pb";
import { AgentChangeKind, AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { AuthorityService } from "@depute/contracts/depute/registry/v1/authority_service_pb";
import { DiscoveryService } from "@depute/contracts/depute/registry/v1/discovery_service_pb";
import { OfferService } from "@depute/contracts/depute/registry/v1/offer_service_pb";
import { OrganizationService } from "@depute/contracts/depute/registry/v1/organization_service_pb";
import { PolicyService } from "@depute/contracts/depute/registry/v1/policy_service_pb";
import { TrustService } from "@depute/contracts/depute/registry/v1/trust_service_pb";
import { walkReads } from "@depute/service/testing";
import { afterEach, beforeEach, expect, it } from "vitest";
import { capability } from "../testing/capability.ts";
import { offerOf } from "../testing/offer.ts";
import { ALICE, as, BOB, CAROL, type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";
import { signer } from "../testing/statement.ts";

const SERVICES = [
  ...[AgentService, AuthorityService, DiscoveryService, OfferService],
  ...[OrganizationService, PolicyService, TrustService],
];
/** ALICE acts for acme, BOB for globex; CAROL is the operator. */
const OPERATOR = CAROL;

let platform: Platform;
beforeEach(async () => {
  platform = await startPlatform(["--trust-operators", OPERATOR, "--asp-authority-operators", OPERATOR]);
  await fill("acme", ALICE);
  await fill("globex", BOB);
  for (const [of, by] of [
    ["acme", "globex"],
    ["globex", "acme"],
  ] as const) {
    await platform.trust.recordEvidence({
      evidenceId: `of ${of}`,
      evidence: {
        ...{ agentId: `${of}-desk`, counterpartAgentId: `${by}-desk` },
        kind: { case: "attestation", value: { attestationId: `att_${of}`, success: true, quality: 1 } },
      },
    });
  }
}, 180_000);
afterEach(() => platform.stop());

let requests = 0;
const requestId = () => `request-${++requests}`;

/** Fills every table with records of an organization. Each id and text contains the organization's name. */
async function fill(organization: string, principal: string) {
  const { agents, organizations, offers, authorities } = platform;
  const prove = { requestId: requestId(), organization, principal };
  await organizations.createOrganizationProof(prove, as(OPERATOR));
  await organizations.admitMember({ organization, principal: `${organization}-member` }, as(principal));
  const register = (id: string, parts: object) =>
    agents.registerAgent(
      { requestId: requestId(), agent: { id, principal, organization, ...parts } },
      as(principal),
    );
  const described = { displayName: `${organization} words`, tags: [`${organization}-tag`] };
  await register(`${organization}-desk`, { ...described, version: "1" });
  await register(`${organization}-desk`, { ...described, version: "2" });
  await register(`${organization}-desk:1`, { version: "2" });
  const named = { visibility: AgentVisibility.NAMED, visibleTo: [principal] };
  await register(`${organization}-hidden`, { ...named });
  const key = signer();
  const card = { agentId: `agent://${organization}.example/desk/a`, name: `${organization}-card` };
  await authorities.createAuthorityGrant(
    { requestId: requestId(), authority: `${organization}.example`, principal },
    as(OPERATOR),
  );
  await authorities.createAuthorityGrant(
    { requestId: requestId(), authority: `${organization}.example`, principal: key.principal },
    as(principal),
  );
  await register(`${organization}-carded`, { card });
  await agents.publishCapabilities(
    {
      ...{ requestId: requestId(), agentId: `${organization}-desk` },
      capabilities: [capability(`${organization}-sum`, { desc: `${organization} words` })],
    },
    as(principal),
  );
  for (const title of ["one", "two"]) {
    const sellerAgent = { agentId: `${organization}-desk`, organizationId: organization };
    const offer = offerOf({
      offerId: `${organization}-offer`,
      title: `${organization} ${title}`,
      sellerAgent,
    });
    await offers.publishOffer({ requestId: requestId(), offer }, as(principal));
  }
}

const TEXTS = ["acme", "globex"].flatMap((name) => [
  ...[name, `${name}-desk`, `${name}-sum`, `${name}-offer`],
  ...[`${name}.example`, `agent://${name}.example/desk/a`],
]);
const walk = () =>
  walkReads({ transport: platform.transport, services: SERVICES, texts: [...TEXTS, ALICE, BOB] });

/** Purges an organization; returns the numbers of deleted records by kind, and the last answer. */
async function purge(organization: string, maxCount: number) {
  const deleted = new Map<string, number>();
  for (let calls = 1; calls < 200; calls++) {
    const answer = await platform.organizations.purgeOrganization({
      ...{ requestId: requestId(), organization, maxCount },
    });
    for (const { kind, count } of answer.deleted) deleted.set(kind, (deleted.get(kind) ?? 0) + Number(count));
    expect(Number(answer.deletedCount)).toBeLessThanOrEqual(maxCount);
    if (!answer.more) return { deleted: Object.fromEntries(deleted), answer, calls };
  }
  throw new Error("the purge does not end");
}

/** Removes the sequence numbers, because a purge appends changes to the log and so raises them. */
const plain = (text = "") => text.replace(/"sequence":"\d+"/g, "");

it.each([3])(
  "leaves nothing of one organization, and all of the other, in steps of %i",
  async (max) => {
    const before = await walk();
    expect([...before.values()].filter((text) => text.includes("acme")).length).toBeGreaterThan(30);
    const { deleted, answer } = await purge("acme", max);
    expect(deleted).toEqual({
      ...{ agents: 4, "agent versions": 5, offers: 2, trust: expect.any(Number), "trust evidence": 1 },
      ...{ members: 2, "organization proofs": 1, "authority grants": 2 },
    });
    expect(answer.remaining.map(({ kind }) => kind)).toEqual([
      ...["trust", "trust evidence", "agent changes", "registry answers", "purged ids of the registry"],
    ]);
    const after = await walk();
    for (const [call, text] of after) {
      expect([call, text]).toEqual([call, expect.not.stringContaining("acme")]);
      const earlier = before.get(call) ?? "";
      if (earlier.includes("globex") && !earlier.includes("acme")) {
        expect([call, plain(text)]).toEqual([call, plain(earlier)]);
      }
    }
    // The score of globex's agent keeps the gains that came from acme's agent.
    const trust = (walked: Map<string, string>) => walked.get("GetTrust agent_id=globex-desk");
    expect(trust(after)).toBe(trust(before));
    expect(await purge("acme", max)).toMatchObject({ deleted: {}, calls: 1 });
  },
  180_000,
);

it("continues after a restart in the middle, and answers a repeated request as the first", async () => {
  const request = { requestId: "half", organization: "acme", maxCount: 4 };
  const first = await platform.organizations.purgeOrganization(request);
  expect(first.more).toBe(true);
  await platform.restart();
  expect(await platform.organizations.purgeOrganization(request)).toEqual(first);
  const reused = platform.organizations.purgeOrganization({ ...request, maxCount: 5 });
  expect(await refusal(reused)).toMatchObject({ reason: "REQUEST_ID_REUSED" });
  await purge("acme", 4);
  for (const text of (await walk()).values()) expect(text).not.toContain("acme");
}, 180_000);

it("is for operators only, and keeps ids, authorities and a proven name from others", async () => {
  const call = { requestId: requestId(), organization: "acme" };
  expect(await refusal(platform.organizations.purgeOrganization(call, as(BOB)))).toMatchObject({
    reason: "CALLER_NOT_ALLOWED",
  });
  await platform.organizations.purgeOrganization(call, as(OPERATOR));
  await purge("acme", 1000);
  const register = (agent: object) =>
    platform.agents.registerAgent({ requestId: requestId(), agent: { principal: BOB, ...agent } }, as(BOB));
  expect(await refusal(register({ id: "acme-desk" }))).toMatchObject({ reason: "AGENT_EXISTS" });
  const card = { agentId: "agent://acme.example/desk/a", name: "taken" };
  await platform.authorities.deleteAuthorityGrant(
    { requestId: requestId(), authority: "acme.example", principal: ALICE },
    as(OPERATOR),
  );
  expect(await refusal(register({ id: "squatter", card }))).toMatchObject({ reason: "CALLER_NOT_ALLOWED" });
  const sellerAgent = { agentId: "globex-desk", organizationId: "globex" };
  const offer = offerOf({ offerId: "acme-offer", sellerAgent });
  const published = platform.offers.publishOffer({ requestId: requestId(), offer }, as(BOB));
  expect(await refusal(published)).toMatchObject({ reason: "OFFER_VERSION_EXISTS" });
  await register({ id: "squatter", organization: "acme" });
  expect((await platform.organizations.listMembers({ organization: "acme" })).members).toEqual([]);
});

it("notifies watchers of the removal before it deletes the agents", async () => {
  const seen: [string, AgentChangeKind][] = [];
  let purged: Promise<unknown> | undefined;
  for await (const { change } of platform.agents.watchAgents({ sendStart: true })) {
    if (change === undefined) purged ??= purge("acme", 1);
    else seen.push([change.agentId, change.kind]);
    if (seen.length === 1) break;
  }
  await purged;
  expect(seen).toEqual([[expect.stringMatching(/^acme-/), AgentChangeKind.REMOVED]]);
});
