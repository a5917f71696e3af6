import { create } from "@bufbuild/protobuf";
import { ProposalSchema, ProposalState } from "@depute/contracts/depute/registry/v1/proposal_service_pb";
import { openStore, type Store } from "@depute/store";
import { afterEach, beforeEach, expect, it } from "vitest";
import { migrations } from "./migrations.ts";
import {
  countProposals,
  endProposal,
  findProposal,
  insertProposal,
  owingProposals,
  purgeProposals,
  type StoredProposal,
  settleCall,
} from "./proposals.ts";

const DAY_MS = 86_400_000;
const NOW = 1_000 * DAY_MS;

let store: Store;
beforeEach(async () => {
  store = await openStore({
    memory: true,
    migrations,
    onError: (error) => {
      throw error;
    },
  });
});
afterEach(() => store.close());

function proposal(id: string, more: Partial<StoredProposal> = {}): StoredProposal {
  return {
    ...{ id, proposer: "p", organization: "", state: ProposalState.PENDING, createTime: NOW },
    ...{ expireTime: NOW + DAY_MS, endTime: 0, decidedBy: "", reason: "", reviewers: ["r"] },
    ...{ baseDigest: "", owed: "create", record: create(ProposalSchema), ...more },
  };
}
const insert = (id: string, more: Partial<StoredProposal> = {}) =>
  store.write((tx) => insertProposal(tx, proposal(id, more)));
const find = (id: string) => store.read((tx) => findProposal(tx, id));

it("keeps a withdrawal due that arrives during the creation of the review", async () => {
  await insert("a");
  const [creating] = await store.read((tx) => owingProposals(tx, 10));
  const end = { state: ProposalState.WITHDRAWN, reason: "", decidedBy: "", endTime: NOW } as const;
  await store.write((tx) => endProposal(tx, "a", { ...end, owed: "withdraw" }));
  await store.write((tx) => settleCall(tx, creating as StoredProposal));
  expect((await find("a"))?.owed).toBe("withdraw");
  await store.write((tx) => settleCall(tx, proposal("a", { owed: "withdraw" })));
  expect(await store.read((tx) => owingProposals(tx, 10))).toEqual([]);
});

it("deletes proposals that ended 90 days ago and owe no call", async () => {
  const old = NOW - 91 * DAY_MS;
  await insert("pending", { createTime: old });
  await insert("ended", { createTime: old, endTime: old, owed: "" });
  await insert("owing", { createTime: old, endTime: old, owed: "withdraw" });
  await insert("fresh", { endTime: NOW, owed: "" });
  await store.write((tx) => purgeProposals(tx, NOW));
  const kept = await Promise.all(["pending", "ended", "owing", "fresh"].map(find));
  expect(kept.map((one) => one?.id)).toEqual(["pending", undefined, "owing", "fresh"]);
});

it("counts pending proposals, and those of the last day", async () => {
  await insert("a");
  await insert("b", { endTime: NOW });
  await insert("c", { createTime: NOW - DAY_MS - 1 });
  await insert("d", { proposer: "q" });
  const counts = await store.read((tx) => countProposals(tx, "p", NOW));
  expect(counts).toEqual({ pending: 2, today: 2, pendingOfAll: 3 });
});
