import { create, toBinary } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  type Reservation,
  ReservationSchema,
  ReservationState,
  ReserveSpendRequestSchema,
  type SpendService,
} from "@depute/contracts/depute/tokens/v1/spend_service_pb";
import { DeputeError, ErrorReason, encodeBase64Url, owningOrganization, toTimestamp } from "@depute/core";
import type { VerifiedBlock } from "@depute/dct";
import type { Identity } from "@depute/service";
import type { TokensContext } from "../context.ts";
import { reasonText, refusedToken } from "../rules/denials.ts";
import { spanMs, toSerialized } from "../rules/documents.ts";
import { DEFAULT_RESERVATION_MS, reservationState } from "../rules/spend.ts";
import { remainingOf, type SpendRequest } from "../spend-ledger.ts";
import type { StoredReservation } from "../store/spend-rows.ts";

const STATES = {
  held: ReservationState.HELD,
  expired: ReservationState.EXPIRED,
  committed: ReservationState.COMMITTED,
  released: ReservationState.RELEASED,
} as const;

/** Handles the calls of SpendService. */
export function spendService(tokens: TokensContext): Required<ServiceImpl<typeof SpendService>> {
  const { engine, chains, spend, clock } = tokens;
  const toReservation = (reservation: StoredReservation) => message(reservation, clock.now());
  return {
    async reserveSpend(request, context) {
      const identity = await tokens.identify(context);
      const asked: SpendRequest = {
        caller: identity.principal,
        organization: owningOrganization(identity, undefined),
        requestId: request.requestId,
        digest: encodeBase64Url(engine.blake2b256(toBinary(ReserveSpendRequestSchema, request))),
        amount: Number(request.amountMicrocents),
        lifetimeMs: spanMs(request.lifetime) || DEFAULT_RESERVATION_MS,
      };
      const checked = await chains.check(toSerialized(request.token));
      if (!checked.ok) {
        // A replay gets the response of the first call, even if the token has expired or been revoked since then.
        const before = await spend.recall(asked);
        if (before !== undefined) return { reservation: toReservation(before) };
        deny(tokens, identity, [], reasonText(checked.denial));
        throw refusedToken(checked.denial);
      }
      const { blocks, token } = checked;
      assertSpender(tokens, identity, blocks, [checked.scope.holder]);
      try {
        const { reservation, remaining } = await spend.reserve(asked, blocks, () => {
          const denial = chains.finalDenial(token, blocks);
          if (denial !== undefined) throw refusedToken(denial);
        });
        return { reservation: toReservation(reservation), remainingMicrocents: BigInt(remaining) };
      } catch (error) {
        if (error instanceof DeputeError && error.reason === ErrorReason.BUDGET_EXCEEDED) {
          deny(tokens, identity, blocks, "budget_exceeded");
        }
        throw error;
      }
    },

    async commitSpend({ reservationId, amountMicrocents }, context) {
      const identity = await tokens.identify(context);
      const outcome = { commit: amountMicrocents === undefined ? undefined : Number(amountMicrocents) };
      const settled = await spend.settle(reservationId, outcome, identity.principal, isMaker(identity));
      return { reservation: toReservation(settled) };
    },

    async releaseSpend({ reservationId }, context) {
      const identity = await tokens.identify(context);
      const settled = await spend.settle(reservationId, "release", identity.principal, isMaker(identity));
      return { reservation: toReservation(settled) };
    },

    async getReservation({ reservationId }, context) {
      const identity = await tokens.identify(context);
      return { reservation: toReservation(await spend.find(reservationId, isMaker(identity))) };
    },

    async getBudget({ token }, context) {
      const identity = await tokens.identify(context);
      const chain = await chains.provenLevels(toSerialized(token));
      if (!chain.ok) throw refusedToken(chain.denial);
      const { blocks } = chain;
      const parties = blocks.flatMap(({ signer, delegatee }) => [signer, delegatee]);
      assertSpender(tokens, identity, blocks, parties);
      const levels = await spend.budget(blocks);
      return {
        levels: levels.map(({ revocationId, limit, reserved, spent }, i) => ({
          revocationId,
          delegationId: blocks[i]?.delegationId ?? "",
          limitMicrocents: BigInt(limit),
          reservedMicrocents: BigInt(reserved),
          spentMicrocents: BigInt(spent),
        })),
        remainingMicrocents: BigInt(remainingOf(levels)),
      };
    },
  };
}

/** Requires that the caller is one of the given principals, `local`, or named in the setting `spenders`. */
function assertSpender(
  tokens: TokensContext,
  identity: Identity,
  blocks: readonly VerifiedBlock[],
  principals: readonly string[],
): void {
  const { principal, local } = identity;
  if (local || tokens.spenders.has(principal) || principals.includes(principal)) return;
  deny(tokens, identity, blocks, "caller_not_allowed");
  throw new DeputeError(
    ErrorReason.CALLER_NOT_ALLOWED,
    "the caller may not manage the spend under this token; use the holder's credentials",
  );
}

function isMaker({ principal, local }: Identity): (maker: string) => boolean {
  return (maker) => local || maker === principal;
}

function deny(
  { audit }: TokensContext,
  { principal: caller }: Identity,
  blocks: readonly VerifiedBlock[],
  reason: string,
): void {
  const ids = blocks.map(({ revocationId }) => revocationId);
  audit.assertRoom();
  audit.add({ kind: "reserve", caller, principal: "", decision: "denied", reason, blocks: ids });
}

function message(reservation: StoredReservation, now: number): Reservation {
  const { id, amount, blocks, organization, createTime, expireTime } = reservation;
  const { state, charged } = reservationState(reservation, now);
  return create(ReservationSchema, {
    id,
    state: STATES[state],
    amountMicrocents: BigInt(amount),
    chargedMicrocents: BigInt(charged),
    revocationIds: [...blocks],
    organization,
    createTime: toTimestamp(createTime),
    expireTime: toTimestamp(expireTime),
  });
}
