import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { RevocationScope } from "@depute/contracts/delegateos/v0/revocation_pb";
import type { SerializedDCT } from "@depute/contracts/delegateos/v0/token_pb";
import { ReservationState } from "@depute/contracts/depute/tokens/v1/spend_service_pb";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { denialOf } from "../testing/decisions.ts";
import {
  alice,
  attenuate,
  bob,
  carol,
  id,
  mallory,
  mint,
  newRequest,
  requirePresent,
  verify,
  withProof,
} from "../testing/holders.ts";
import { type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";

let platform: Platform;
beforeEach(async () => {
  platform = await startPlatform(["--spenders", id(carol)]);
});
afterEach(() => platform.stop());

/** Creates a chain with a budget of 1000 microcents for alice, and of 100 for bob below her. */
async function chain() {
  const first = await mint(platform);
  const second = await attenuate(platform, first.token, alice, bob, { maxBudgetMicrocents: 100n });
  return { first, second, alices: requirePresent(first.token), bobs: requirePresent(second.token) };
}

const reserve = (token: SerializedDCT, amountMicrocents: bigint, more: object = {}) =>
  platform.spend.reserveSpend({ requestId: newRequest(), token, amountMicrocents, ...more });

const amounts = async (token: SerializedDCT) => {
  const { levels } = await platform.spend.getBudget({ token });
  return levels.map(({ limitMicrocents, reservedMicrocents, spentMicrocents }) => {
    return [limitMicrocents, reservedMicrocents, spentMicrocents].map(Number);
  });
};

describe("SpendService", () => {
  it("reserves, charges and releases on every block of the chain, across a restart", async () => {
    const { bobs, first, second } = await chain();
    const { reservation, remainingMicrocents } = await reserve(bobs, 60n);
    expect(reservation).toMatchObject({
      state: ReservationState.HELD,
      amountMicrocents: 60n,
      chargedMicrocents: 0n,
      revocationIds: [first.revocationId, second.revocationId],
    });
    expect(remainingMicrocents).toBe(40n);
    await platform.restart();
    expect(await amounts(bobs)).toEqual([
      [1000, 60, 0],
      [100, 60, 0],
    ]);
    const reservationId = requirePresent(reservation).id;
    const committed = await platform.spend.commitSpend({ reservationId, amountMicrocents: 25n });
    expect(committed.reservation).toMatchObject({
      state: ReservationState.COMMITTED,
      chargedMicrocents: 25n,
    });
    expect(await platform.spend.commitSpend({ reservationId, amountMicrocents: 25n })).toEqual(committed);
    const released = requirePresent((await reserve(bobs, 75n)).reservation);
    await platform.spend.releaseSpend({ reservationId: released.id });
    expect(await amounts(bobs)).toEqual([
      [1000, 0, 25],
      [100, 0, 25],
    ]);
    const late = platform.spend.commitSpend({ reservationId: released.id });
    expect(await refusal(late)).toMatchObject({
      reason: "RESERVATION_SETTLED",
      metadata: { reservation: released.id, state: "released", charged: "0" },
    });
  });

  it("is applied by VerifyToken at every level, before the requested capability (B2)", async () => {
    const { bobs, alices } = await chain();
    await reserve(bobs, 70n);
    const scope = async (token: SerializedDCT, holder: typeof alice, more: Record<string, unknown> = {}) => {
      const { result } = await verify(platform, token, holder, more);
      return result.case === "scope" ? result.value.remainingBudgetMicrocents : undefined;
    };
    expect(await scope(bobs, bob)).toBe(30n);
    expect(await scope(alices, alice)).toBe(930n);
    expect(await scope(bobs, bob, { spentMicrocents: 10n })).toBe(20n);
    expect((await denialOf(verify(platform, bobs, bob, { spentMicrocents: 30n }))).type).toBe(
      DenialType.BUDGET_EXCEEDED,
    );
    await reserve(bobs, 30n);
    const ungranted = { requested: { namespace: "docs", action: "read", resource: "/elsewhere" } };
    const refusedRequests: Parameters<typeof verify>[3][] = [
      {},
      ungranted,
      { contractId: "ct_ffffffffffff" },
    ];
    for (const more of refusedRequests) {
      const denial = await denialOf(verify(platform, bobs, bob, more));
      expect(denial).toMatchObject({ type: DenialType.BUDGET_EXCEEDED, detail: "attenuations[0]" });
      expect(denial.granted).toBeUndefined();
    }
    expect(await scope(alices, alice)).toBe(900n);
  });

  it("refuses an amount beyond a block's limit, with the remaining amount (B3)", async () => {
    const { bobs } = await chain();
    expect(await refusal(reserve(bobs, 101n))).toMatchObject({
      reason: "BUDGET_EXCEEDED",
      metadata: { needed: "101", allowed: "100", unit: "microcents", level: "1" },
    });
    for (const amount of [0n, -1n, 2n ** 53n]) {
      expect(await refusal(reserve(bobs, amount))).toMatchObject({
        reason: "INVALID_REQUEST",
        fields: ["amount_microcents"],
      });
    }
    expect(await platform.audit()).toContainEqual(
      expect.objectContaining({ kind: "reserve", decision: "denied", reason: "budget_exceeded" }),
    );
  });

  it("refuses a cost above the reservation, which stays (B4)", async () => {
    const { bobs } = await chain();
    const { reservation } = await reserve(bobs, 10n);
    const reservationId = requirePresent(reservation).id;
    const call = platform.spend.commitSpend({ reservationId, amountMicrocents: 11n });
    expect(await refusal(call)).toMatchObject({
      reason: "BUDGET_EXCEEDED",
      metadata: { needed: "11", allowed: "10" },
    });
    platform.clock.advance(300_000);
    const { reservation: over } = await platform.spend.getReservation({ reservationId });
    expect(over).toMatchObject({ state: ReservationState.EXPIRED, chargedMicrocents: 10n });
    const { reservation: settled } = await platform.spend.commitSpend({ reservationId });
    expect(settled).toMatchObject({ state: ReservationState.COMMITTED, chargedMicrocents: 10n });
  });

  it("answers a replay with its reservation, also after the token's end (B6)", async () => {
    const { bobs, first } = await chain();
    const request = { requestId: newRequest(), token: bobs, amountMicrocents: 60n };
    const { reservation } = await platform.spend.reserveSpend(request);
    expect((await platform.spend.reserveSpend(request)).reservation).toEqual(reservation);
    const other = { ...request, amountMicrocents: 61n };
    expect((await refusal(platform.spend.reserveSpend(other))).reason).toBe("REQUEST_ID_REUSED");
    const { revocationId } = first;
    await platform.revocations.revokeMintedToken({ revocationId, scope: RevocationScope.CHAIN });
    expect((await platform.spend.reserveSpend(request)).reservation).toEqual(reservation);
    expect(await refusal(reserve(bobs, 1n))).toMatchObject({
      reason: "TOKEN_DENIED",
      metadata: { denial: "revoked" },
    });
    expect(await amounts(bobs)).toEqual([
      [1000, 60, 0],
      [100, 60, 0],
    ]);
  });

  it("is limited to the holder, configured principals and the reservation's maker", async () => {
    const { bobs } = await chain();
    const { spend } = platform;
    const ask = () => ({ requestId: newRequest(), token: bobs, amountMicrocents: 1n });
    const by = (caller: typeof alice, method: string) =>
      withProof(platform, caller, `SpendService/${method}`);
    for (const who of [mallory, alice]) {
      const refused = await refusal(spend.reserveSpend(ask(), by(who, "ReserveSpend")));
      expect(refused.reason).toBe("CALLER_NOT_ALLOWED");
    }
    await spend.reserveSpend(ask(), by(bob, "ReserveSpend"));
    const { reservation } = await spend.reserveSpend(ask(), by(carol, "ReserveSpend"));
    const reservationId = requirePresent(reservation).id;
    const refused = await Promise.all(
      [
        spend.getReservation({ reservationId }, by(bob, "GetReservation")),
        spend.commitSpend({ reservationId }, by(bob, "CommitSpend")),
        spend.releaseSpend({ reservationId }, by(bob, "ReleaseSpend")),
        spend.releaseSpend(
          { reservationId: "019a0000-0000-7000-8000-000000000000" },
          by(bob, "ReleaseSpend"),
        ),
      ].map(refusal),
    );
    expect(new Set(refused.map(({ reason }) => reason))).toEqual(new Set(["RESERVATION_NOT_FOUND"]));
    expect((await refusal(spend.getBudget({ token: bobs }, by(mallory, "GetBudget")))).reason).toBe(
      "CALLER_NOT_ALLOWED",
    );
    for (const who of [alice, bob, carol]) {
      const { remainingMicrocents } = await spend.getBudget({ token: bobs }, by(who, "GetBudget"));
      expect(remainingMicrocents).toBe(98n);
    }
  });

  it("shows the budget of an expired token, not of an invalid one", async () => {
    const { bobs } = await chain();
    await reserve(bobs, 60n, { lifetime: durationFromMs(86_400_000) });
    platform.clock.advance(2 * 3_600_000);
    expect(await amounts(bobs)).toEqual([
      [1000, 60, 0],
      [100, 60, 0],
    ]);
    expect((await refusal(reserve(bobs, 1n))).metadata).toEqual({ denial: "expired" });
    const foreign = { ...bobs, token: "AAAA" };
    expect((await refusal(platform.spend.getBudget({ token: foreign }))).reason).toBe("TOKEN_MALFORMED");
  });
});
