import { DelegationStatus } from "@depute/contracts/delegateos/v0/delegation_pb";
import { DelegationService } from "@depute/contracts/depute/tokens/v1/delegation_service_pb";
import { HolderSessionService } from "@depute/contracts/depute/tokens/v1/holder_session_service_pb";
import { KeyService } from "@depute/contracts/depute/tokens/v1/key_service_pb";
import { SpendService } from "@depute/contracts/depute/tokens/v1/spend_service_pb";
import { TokenService } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { HOP, ownHeaders } from "@depute/service";
import { walkReads } from "@depute/service/testing";
import { afterEach, beforeEach, expect, it } from "vitest";
import { denialOf } from "../testing/decisions.ts";
import {
  alice,
  attenuate,
  bob,
  carol,
  mint,
  newRequest,
  requirePresent,
  revocation,
  verify,
  withProof,
} from "../testing/holders.ts";
import { type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";

/** The services whose records a purge deletes. The purge keeps the audit log and the revocations. */
const SERVICES = [DelegationService, HolderSessionService, KeyService, SpendService, TokenService];
const CONTRACTS = { acme: "ct_acacacacacac", globex: "ct_b0b0b0b0b0b0" } as const;
type Organization = keyof typeof CONTRACTS;

/** The secret of the platform's services. With it, a call can name the organization that owns the new records. */
const SECRET = "s".repeat(43);

let platform: Platform;
let acme: Awaited<ReturnType<typeof fill>>;
let globex: typeof acme;
beforeEach(async () => {
  platform = await startPlatform([], ["--internal-secret", SECRET]);
  acme = await fill("acme");
  globex = await fill("globex");
}, 180_000);
afterEach(() => platform.stop());

/** Creates records of an organization in every table whose rows belong to an organization. */
async function fill(organization: Organization) {
  const headers = ownHeaders("", organization);
  headers.set(HOP.internal, SECRET);
  const by = { headers };
  const root = await mint(platform, { contractId: CONTRACTS[organization] }, by);
  const token = requirePresent(root.token);
  const ended = await attenuate(platform, root.token, alice, bob);
  const revoked = await attenuate(platform, root.token, alice, carol);
  const key = { requestId: newRequest(), agentId: `${organization}-agent` };
  const { key: kept } = await platform.keys.createKey(key, by);
  await platform.keys.rotateKey({ keyId: requirePresent(kept).id }, by);
  const reserve = async () =>
    requirePresent(
      (
        await platform.spend.reserveSpend(
          { requestId: newRequest(), token: requirePresent(ended.token), amountMicrocents: 60n },
          by,
        )
      ).reservation,
    );
  const [settled, held] = [await reserve(), await reserve()];
  await platform.spend.commitSpend({ reservationId: settled.id, amountMicrocents: 25n }, by);
  const finish = { delegationId: ended.delegationId };
  const result = { status: DelegationStatus.COMPLETED };
  await platform.delegations.finishDelegation(
    { ...finish, outcome: { case: "result", value: result } },
    withProof(platform, alice, "DelegationService/FinishDelegation"),
  );
  const entry = revocation(platform, revoked.revocationId, alice);
  await platform.revocations.revokeToken({ entry, token: requirePresent(revoked.token) });
  const ids = [root.delegationId, ended.delegationId, revoked.delegationId];
  return { token, ended, revoked, held, settled, keyId: requirePresent(kept).id, ids };
}

const walk = () =>
  walkReads({
    transport: platform.transport,
    services: SERVICES,
    texts: [acme, globex].flatMap(({ ids, keyId, held, settled }) => [...ids, keyId, held.id, settled.id]),
  });

async function purge(organization: Organization, maxCount: number) {
  const deleted = new Map<string, number>();
  for (let calls = 1; calls < 50; calls++) {
    const request = { requestId: newRequest(), organization, maxCount };
    const answer = await platform.delegations.purgeOrganization(request);
    for (const { kind, count } of answer.deleted) deleted.set(kind, (deleted.get(kind) ?? 0) + Number(count));
    expect(Number(answer.deletedCount)).toBeLessThanOrEqual(maxCount);
    const remaining = new Map(answer.remaining.map(({ kind, count }) => [kind, count]));
    if (!answer.more) return { deleted: Object.fromEntries(deleted), remaining };
  }
  throw new Error("the purge does not end");
}

/** More than the remaining lifetime of reservations and tokens, in milliseconds. */
const LIFETIMES_MS = 2 * 24 * 3_600_000;

it.each([1])(
  "deletes ended records, then the rest, in steps of %i",
  async (max) => {
    const first = await purge("acme", max);
    expect(first.deleted).toEqual({ "kept keys": 2, reservations: 1, delegations: 1 });
    expect(first.remaining.get("reservations")).toBe(1n);
    expect(first.remaining.get("delegations")).toBe(2n);
    expect([...first.remaining.keys()]).toEqual([
      ...["reservations", "delegations", "blocks", "bindings", "spend", "revocations"],
      ...["used proofs and sessions", "mint requests", "audit records", "audit heads"],
    ]);

    platform.clock.advance(LIFETIMES_MS);
    const before = await walk();
    const second = await purge("acme", max);
    expect(second.deleted).toEqual({ reservations: 1, delegations: 2 });
    expect(second.remaining.has("reservations")).toBe(false);
    expect(second.remaining.has("delegations")).toBe(false);
    const gone = [...acme.ids, acme.keyId, acme.held.id, acme.settled.id, '"acme"', CONTRACTS.acme];
    const after = await walk();
    for (const [call, text] of after) {
      for (const word of gone) expect([call, text]).toEqual([call, expect.not.stringContaining(word)]);
      const earlier = before.get(call) ?? "";
      const isOthers = gone.every((word) => !earlier.includes(word));
      if (isOthers && earlier.includes("globex")) expect([call, text]).toEqual([call, earlier]);
    }
    expect((await purge("acme", max)).deleted).toEqual({});
    const { delegations } = await platform.delegations.listDelegations({ contractId: CONTRACTS.globex });
    expect(delegations.map(({ id }) => id)).toEqual(globex.ids);
  },
  180_000,
);

it("keeps denying: revoked chains, spent budgets, and a second end", async () => {
  const budget = () => platform.spend.getBudget({ token: requirePresent(acme.ended.token) });
  const levels = (await budget()).levels.map((level) => level.reservedMicrocents + level.spentMicrocents);
  expect(levels[0]).toBe(85n);
  await purge("acme", 1000);
  expect((await budget()).levels.map((level) => level.reservedMicrocents + level.spentMicrocents)).toEqual(
    levels,
  );
  expect((await denialOf(verify(platform, acme.revoked.token, carol))).type).toBeDefined();
  const again = platform.tokens.recordToken({ token: requirePresent(acme.revoked.token) });
  expect(await refusal(again)).toMatchObject({ reason: "TOKEN_DENIED" });
  const failed = { case: "result", value: { status: DelegationStatus.FAILED } } as const;
  const secondEnd = platform.delegations.finishDelegation(
    { delegationId: acme.ended.delegationId, outcome: failed },
    withProof(platform, alice, "DelegationService/FinishDelegation"),
  );
  expect(await refusal(secondEnd)).toMatchObject({ reason: "DELEGATION_STATE_CONFLICT" });
  // A held reservation can still be settled, and the next purge deletes it.
  await platform.spend.commitSpend({ reservationId: acme.held.id, amountMicrocents: 10n });
  expect((await purge("acme", 1000)).deleted).toEqual({ reservations: 1 });
});

it("continues after a restart in the middle, answers a repeated request as the first, and is recorded", async () => {
  const request = { requestId: "half", organization: "acme", maxCount: 2 };
  const first = await platform.delegations.purgeOrganization(request);
  expect(first).toMatchObject({ more: true, deletedCount: 2n });
  await platform.restart();
  expect(await platform.delegations.purgeOrganization(request)).toEqual(first);
  expect((await purge("acme", 2)).deleted).toEqual({ reservations: 1, delegations: 1 });
  const decisions = await platform.audit();
  const recorded = decisions.filter(({ call }) => call.resource === "organizations/acme");
  expect(recorded[0]).toMatchObject({ kind: "call", decision: "allowed", reason: "2", caller: "local" });
  expect(recorded.length).toBeGreaterThanOrEqual(2);
});

it("is for operators only", async () => {
  const call = { requestId: newRequest(), organization: "acme" };
  const by = withProof(platform, alice, "DelegationService/PurgeOrganization");
  expect(await refusal(platform.delegations.purgeOrganization(call, by))).toMatchObject({
    reason: "CALLER_NOT_ALLOWED",
  });
  expect((await purge("globex", 1000)).deleted).toMatchObject({ "kept keys": 2 });
});
