import { ProposalState } from "@depute/contracts/depute/registry/v1/proposal_service_pb";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ALICE, as, BOB, CAROL, type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";

const DAY_MS = 86_400_000;

let platform: Platform;
let requests = 0;
beforeAll(async () => {
  platform = await startPlatform(["--trust-operators", CAROL]);
});
afterAll(() => platform.stop());

const propose = async (caller: string) => {
  const n = ++requests;
  const organizationProof = { organization: `organization ${n}` };
  const { proposal } = await platform.proposals.createProposal(
    {
      ...{ requestId: `r${n}`, justification: "needed" },
      grant: { case: "organizationProof", value: organizationProof },
    },
    as(caller),
  );
  return proposal?.id ?? "";
};
const withdraw = (caller: string, proposalId: string) =>
  platform.proposals.withdrawProposal({ proposalId }, as(caller));
const list = async (caller: string, request: object = {}) =>
  platform.proposals.listProposals(request, as(caller));

it("lets a principal create 64 proposals in 24 hours", async () => {
  for (let n = 0; n < 64; n++) await withdraw(ALICE, await propose(ALICE));
  const { reason, metadata } = await refusal(propose(ALICE));
  expect([reason, metadata.limit]).toEqual(["LIMIT_EXCEEDED", "proposals_per_day"]);
  await propose(BOB);
  platform.clock.advance(DAY_MS);
  await propose(ALICE);
});

it("lists the newest first, page by page, of the caller or of all", async () => {
  const state = ProposalState.PENDING;
  const first = await list(CAROL, { pageSize: 1, state });
  const second = await list(CAROL, { pageSize: 1, state, pageToken: first.nextPageToken });
  expect([first, second].map(({ proposals }) => proposals[0]?.proposer)).toEqual([ALICE, BOB]);
  expect(second.nextPageToken).toBe("");
  expect((await list(ALICE, { state })).proposals).toHaveLength(1);
  expect((await list(CAROL, { proposer: BOB })).proposals).toHaveLength(1);
  expect((await list(ALICE, { proposer: BOB })).proposals).toEqual([]);
  const foreign = await refusal(list(ALICE, { pageToken: first.nextPageToken }));
  expect(foreign.reason).toBe("PAGE_TOKEN_INVALID");
});

it("keeps proposals over a restart", async () => {
  const before = await list(CAROL);
  await platform.restart();
  expect((await list(CAROL)).proposals).toEqual(before.proposals);
});

it("waits for the verifier before it deletes withdrawn proposals, and keeps pending ones", async () => {
  // No review queue runs in this test, so the call to the verifier for each withdrawal stays undelivered.
  platform.clock.advance(91 * DAY_MS);
  const before = (await list(CAROL, { pageSize: 1000 })).proposals.length;
  await propose(BOB);
  expect((await list(CAROL, { pageSize: 1000 })).proposals).toHaveLength(before + 1);
});
