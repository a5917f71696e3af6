import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startPlatform, type TestPlatform } from "../../gateway/platform.ts";
import {
  ALICE,
  AUTHORITY,
  BOB,
  curl,
  flagsOf,
  type Json,
  MANIFEST,
  manifestOf,
  newRequest,
  ORGANIZATION,
  reasonOf,
} from "./scene.ts";

const PROPOSALS = "registry.v1.ProposalService";
const REVIEWS = "verifier.v1.ReviewService";

let folder: string;
let platform: TestPlatform;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "depute-proposals-"));
  platform = await startPlatform(flagsOf(join(folder, "credentials.json")));
  await call(ALICE, "registry.v1.AgentService/RegisterAgent", {
    requestId: newRequest(),
    agent: { id: "clerk", version: "1", principal: ALICE, manifest: manifestOf("qa") },
  });
}, 60_000);
afterAll(async () => {
  await platform.stop();
  rmSync(folder, { recursive: true, force: true });
});

const call = (caller: string, method: string, request: Json) => curl(platform.url, caller, method, request);
const create = (caller: string, grant: Json) =>
  call(caller, `${PROPOSALS}/CreateProposal`, { requestId: newRequest(), justification: "needed", ...grant });
const propose = async (caller: string, grant: Json): Promise<string> => {
  const answer = await create(caller, grant);
  expect(answer).toMatchObject({ proposal: { state: "PROPOSAL_STATE_PENDING", proposer: caller } });
  return String((answer.proposal as Json).id);
};
const get = async (caller: string, proposalId: string): Promise<Json> =>
  (await call(caller, `${PROPOSALS}/GetProposal`, { proposalId })).proposal as Json;
const stateOf = (id: string, proposer = ALICE) =>
  expect.poll(async () => (await get(proposer, id)).state, { timeout: 10_000 });
/** Waits until a reviewer sees the review of a proposal. */
const reviewed = (id: string, caller = "operator") =>
  expect
    .poll(async () => (await call(caller, `${REVIEWS}/GetReview`, { reviewId: id })).review, {
      timeout: 10_000,
    })
    .toMatchObject({ id, kind: "REVIEW_KIND_GRANT" });
const decide = (caller: string, reviewId: string, verdict = "APPROVED", reason = "", reviewer = "") =>
  call(caller, `${REVIEWS}/DecideReview`, {
    ...{ reviewId, verdict: `REVIEW_VERDICT_${verdict}`, reason, reviewer },
  });
const withdraw = (caller: string, proposalId: string) =>
  call(caller, `${PROPOSALS}/WithdrawProposal`, { proposalId, reason: "not needed" });

describe("a principal without the permission to grant proposes, and an operator approves in the review queue", () => {
  test("an organization", async () => {
    const id = await propose(ALICE, ORGANIZATION());
    await reviewed(id);
    const { review } = (await call("operator", `${REVIEWS}/GetReview`, { reviewId: id })) as { review: Json };
    expect(review).toMatchObject({
      subject: "organization acme",
      author: ALICE,
      reviewers: ["truster"],
      reviewerRoles: ["ROLE_OPERATOR"],
      content: {
        grant: "organization_proof",
        organization: "acme",
        principal: ALICE,
        justification: "needed",
      },
    });
    await decide("operator", id);
    await stateOf(id).toBe("PROPOSAL_STATE_GRANTED");
    const proofs = await call(ALICE, "registry.v1.OrganizationService/ListOrganizationProofs", {
      organization: "acme",
    });
    expect(proofs.proofs).toMatchObject([{ organization: "acme", principal: ALICE, provenBy: "operator" }]);
    expect(await get(ALICE, id)).toMatchObject({ decidedBy: "operator", endTime: expect.any(String) });
  });

  test("an authority of agent URIs, under which the agent then registers", async () => {
    const agent = {
      id: "desk",
      principal: ALICE,
      card: { agentId: "agent://acme.example/desk/a", name: "a" },
    };
    const register = () =>
      call(ALICE, "registry.v1.AgentService/RegisterAgent", { requestId: newRequest(), agent });
    expect(reasonOf(await register())).toBe("CALLER_NOT_ALLOWED");
    const id = await propose(ALICE, AUTHORITY());
    await reviewed(id, "authorizer");
    await decide("authorizer", id);
    await stateOf(id).toBe("PROPOSAL_STATE_GRANTED");
    expect(await register()).toMatchObject({ agent: { id: "desk" } });
  });

  test("a wider manifest, which then binds the agent", async () => {
    const agent = { id: "clerk", version: "2", principal: ALICE, manifest: manifestOf("qa", "pm") };
    const direct = { requestId: newRequest(), agent };
    expect(reasonOf(await call(ALICE, "registry.v1.AgentService/RegisterAgent", direct))).toBe(
      "AGENT_BOUNDS_WIDENED",
    );
    const id = await propose(ALICE, MANIFEST("2", "qa", "pm"));
    const paths = ['agent.manifest.allowed_agents["pm"]', 'agent.manifest.delegate_rules["pm"]'];
    expect((await get(ALICE, id)).widenings).toMatchObject(paths.map((path) => ({ path })));
    await reviewed(id, "bounder");
    await decide("bounder", id);
    await stateOf(id).toBe("PROPOSAL_STATE_GRANTED");
    const { agent: now } = (await call(ALICE, "registry.v1.AgentService/GetAgent", { agentId: "clerk" })) as {
      agent: Json;
    };
    expect(now).toMatchObject({ version: "2", manifest: { allowedAgents: ["qa", "pm"] } });
  });
});

test("a rejection states its reason, and grants nothing", async () => {
  const id = await propose(ALICE, ORGANIZATION("globex"));
  await reviewed(id);
  await decide("operator", id, "REJECTED", "globex does not know this key");
  await stateOf(id).toBe("PROPOSAL_STATE_REJECTED");
  expect(await get(ALICE, id)).toMatchObject({ reason: "globex does not know this key" });
  const proofs = await call(ALICE, "registry.v1.OrganizationService/ListOrganizationProofs", {
    organization: "globex",
  });
  expect(proofs.proofs ?? []).toEqual([]);
});

test("an approved manifest fails if the agent's record changed after the proposal", async () => {
  const id = await propose(ALICE, MANIFEST("3", "qa", "pm", "hr"));
  await reviewed(id);
  // The owner narrows the manifest, for example after an incident. The approval does not undo that.
  await call(ALICE, "registry.v1.AgentService/RegisterAgent", {
    requestId: newRequest(),
    agent: { id: "clerk", version: "2b", principal: ALICE, manifest: manifestOf("pm") },
  });
  await decide("operator", id);
  await stateOf(id).toBe("PROPOSAL_STATE_FAILED");
  expect(String((await get(ALICE, id)).reason)).toMatch(/has changed since.*propose the manifest again/);
  const { agent } = (await call(ALICE, "registry.v1.AgentService/GetAgent", { agentId: "clerk" })) as {
    agent: Json;
  };
  expect(agent).toMatchObject({ version: "2b", manifest: { allowedAgents: ["pm"] } });
});

describe("roles", () => {
  test.each([
    [ALICE, undefined],
    ["user", undefined],
    ["orchestrator", undefined],
    ["both", undefined],
    ["reviewer", "CALLER_NOT_ALLOWED"],
    ["auditor", "CALLER_NOT_ALLOWED"],
    ["nobody", "CALLER_NOT_ALLOWED"],
    ["operator", "CALLER_NOT_ALLOWED"],
    ["unknown-secret", "UNAUTHENTICATED"],
  ])("%s proposes: %s", async (caller, reason) => {
    const answer = await create(caller, ORGANIZATION(`of ${caller}`));
    expect(reasonOf(answer)).toBe(reason);
    if (reason === undefined) await withdraw(caller, String((answer.proposal as Json).id));
  });

  const kinds: Record<string, () => Json> = {
    organization: () => ORGANIZATION(newRequest()),
    authority: () => AUTHORITY(`${newRequest()}.example`),
    manifest: () => MANIFEST(newRequest(), "pm", "hr"),
  };
  test.each([
    ["organization", "operator", undefined],
    ["organization", "truster", undefined],
    ["organization", "authorizer", "REVIEW_NOT_FOUND"],
    ["organization", "bounder", "REVIEW_NOT_FOUND"],
    ["organization", "reviewer", "REVIEW_NOT_FOUND"],
    ["organization", "nobody", "CALLER_NOT_ALLOWED"],
    ["organization", ALICE, "CONFLICT_OF_INTEREST"],
    ["organization", BOB, "REVIEW_NOT_FOUND"],
    ["authority", "authorizer", undefined],
    ["authority", "truster", "REVIEW_NOT_FOUND"],
    ["authority", ALICE, "CONFLICT_OF_INTEREST"],
    ["manifest", "bounder", undefined],
    ["manifest", "authorizer", "REVIEW_NOT_FOUND"],
    ["manifest", ALICE, "CONFLICT_OF_INTEREST"],
  ])("a proposed %s is decided by %s: %s", async (kind, caller, reason) => {
    const id = await propose(ALICE, kinds[kind]?.() ?? {});
    await reviewed(id);
    expect(reasonOf(await decide(caller, id, "REJECTED", "a test"))).toBe(reason);
    await withdraw(ALICE, id);
  });

  test("an operator approves neither its own proposal nor in another operator's name", async () => {
    const id = await propose("both", ORGANIZATION("own"));
    await reviewed(id);
    expect(reasonOf(await decide("both", id))).toBe("CONFLICT_OF_INTEREST");
    expect(reasonOf(await decide("both", id, "APPROVED", "", "truster"))).toBe("CALLER_NOT_ALLOWED");
    await withdraw("both", id);
  });

  test("proposals and their reviews are invisible to others", async () => {
    const id = await propose(ALICE, ORGANIZATION("hidden"));
    await reviewed(id);
    const ids = async (caller: string) =>
      ((await call(caller, `${PROPOSALS}/ListProposals`, {})).proposals as Json[] | undefined)?.map(
        (one) => one.id,
      );
    expect(reasonOf(await call(BOB, `${PROPOSALS}/GetProposal`, { proposalId: id }))).toBe(
      "PROPOSAL_NOT_FOUND",
    );
    expect(reasonOf(await withdraw(BOB, id))).toBe("PROPOSAL_NOT_FOUND");
    expect(await ids(BOB)).toBeUndefined();
    for (const caller of [ALICE, "operator", "truster"]) expect(await ids(caller)).toContain(id);
    const reviews = async (caller: string) =>
      ((await call(caller, `${REVIEWS}/ListReviews`, { kind: "REVIEW_KIND_GRANT" })).reviews ?? []) as Json[];
    expect((await reviews("operator")).filter((review) => review.id === id)).toHaveLength(1);
    expect(await reviews(BOB)).toEqual([]);
    expect(reasonOf(await withdraw("truster", id))).toBe("CALLER_NOT_ALLOWED");
    await withdraw(ALICE, id);
  });
});

test("a withdrawn proposal leaves the queue, and a repeated withdrawal changes nothing", async () => {
  const id = await propose(ALICE, ORGANIZATION("initech"));
  await reviewed(id);
  const first = await withdraw(ALICE, id);
  expect(first.proposal).toMatchObject({ state: "PROPOSAL_STATE_WITHDRAWN", reason: "not needed" });
  expect(await withdraw(ALICE, id)).toEqual(first);
  await expect
    .poll(async () => (await call("operator", `${REVIEWS}/GetReview`, { reviewId: id })).review, {
      timeout: 10_000,
    })
    .toMatchObject({ state: "REVIEW_STATE_WITHDRAWN" });
  expect(reasonOf(await decide("operator", id))).toBe("REVIEW_CLOSED");
});

describe("a proposal is refused", () => {
  test.each<[string, Json, string, string?]>([
    ["without a grant", {}, "INVALID_REQUEST"],
    [
      "without a justification",
      { ...ORGANIZATION("x"), justification: "" },
      "INVALID_REQUEST",
      "justification",
    ],
    ["of a proven organization", ORGANIZATION("acme"), "INVALID_REQUEST", "organization_proof.organization"],
    ["of a held authority", AUTHORITY(), "INVALID_REQUEST", "authority_grant.authority"],
    ["of a manifest that widens nothing", MANIFEST("9", "pm"), "INVALID_REQUEST", "manifest.manifest"],
    ["of a manifest without a version", MANIFEST("", "pm", "hr"), "INVALID_REQUEST", "manifest.version"],
    ["of a manifest under an old version", MANIFEST("1", "pm", "hr"), "INVALID_REQUEST", "manifest.version"],
    ["of a manifest of no agent", { manifest: { agentId: "no", manifest: { id: "no" } } }, "AGENT_NOT_FOUND"],
    ["with a misspelt member", { organisation: {} }, "INVALID_REQUEST"],
  ])("%s", async (_, grant, reason, field) => {
    const answer = await create(ALICE, grant);
    expect(reasonOf(answer)).toBe(reason);
    if (field !== undefined) expect(JSON.stringify(answer)).toContain(field);
  });

  test("of another principal's agent", async () => {
    expect(reasonOf(await create(BOB, MANIFEST("9", "pm", "hr")))).toBe("CALLER_NOT_ALLOWED");
  });
});

test("a repeated request gets the first answer, and another one under its id is refused", async () => {
  const request = { requestId: newRequest(), justification: "needed", ...ORGANIZATION("hooli") };
  const method = `${PROPOSALS}/CreateProposal`;
  const first = await call("user", method, request);
  expect(await call("user", method, request)).toEqual(first);
  const other = { ...request, justification: "other" };
  expect(reasonOf(await call("user", method, other))).toBe("REQUEST_ID_REUSED");
  await withdraw("user", String((first.proposal as Json).id));
});

test("a principal has at most 16 pending proposals", async () => {
  const ids: string[] = [];
  for (let n = 0; n < 16; n++) ids.push(await propose(BOB, ORGANIZATION(newRequest())));
  expect(JSON.stringify(await create(BOB, ORGANIZATION()))).toContain('"limit":"proposals"');
  for (const id of ids) await withdraw(BOB, id);
  await withdraw(BOB, await propose(BOB, ORGANIZATION(newRequest())));
}, 30_000);

test("a proposal without a decision expires with its review", async () => {
  const brief = await startPlatform([
    ...flagsOf(join(folder, "credentials.json")),
    ...["--proposal-timeout", "2s"],
  ]);
  const ask = (method: string, request: Json) => curl(brief.url, ALICE, `${PROPOSALS}/${method}`, request);
  const request = { requestId: newRequest(), justification: "needed", ...ORGANIZATION() };
  const { proposal } = (await ask("CreateProposal", request)) as { proposal: Json };
  const read = async () => (await ask("GetProposal", { proposalId: proposal.id })).proposal as Json;
  await expect.poll(async () => (await read()).state, { timeout: 10_000 }).toBe("PROPOSAL_STATE_EXPIRED");
  expect(
    reasonOf(
      await curl(brief.url, "operator", `${REVIEWS}/DecideReview`, {
        ...{ reviewId: proposal.id, verdict: "REVIEW_VERDICT_APPROVED" },
      }),
    ),
  ).toBe("REVIEW_CLOSED");
  expect(reasonOf(await ask("WithdrawProposal", { proposalId: proposal.id }))).toBe("PROPOSAL_CLOSED");
  await brief.stop();
}, 30_000);
