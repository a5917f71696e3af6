import type { Client } from "@connectrpc/connect";
import type { SerializedDCT } from "@depute/contracts/delegateos/v0/token_pb";
import type { SpendService } from "@depute/contracts/depute/tokens/v1/spend_service_pb";
import type { TokenService } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { type Clock, DeputeError, ErrorReason, newId } from "@depute/core";
import { type Logger, ownHeaders, tokenDenied } from "@depute/service";
import type { Store, WriteTx } from "@depute/store";
import type { TaskContract } from "../rules/documents.ts";
import { chargesOf, holdCharge, settleCharge } from "../store/judgements.ts";
import type { Judged, Judging } from "./judge.ts";

/** Seconds that a reservation outlives the judging, and the most that there may be (SpendService). */
const GRACE_S = 60;
const MAX_LIFETIME_S = 86_400;

export interface ChargeDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly tokens: Pick<Client<typeof TokenService>, "inspectToken">;
  readonly spend: Pick<Client<typeof SpendService>, "reserveSpend" | "commitSpend">;
}

/** Who pays. */
export interface Payer {
  readonly contract: TaskContract;
  /** The issuer's token under which the cost is spent; without one it counts against the contract's budget alone. */
  readonly token: SerializedDCT | undefined;
}

/**
 * Has an output judged and charges it to the contract's issuer. What it may cost is set aside first, with the contract
 * and on every block of the token, and what it did cost is charged afterwards; where that is not known, also after a
 * crash, all that was set aside is.
 *
 * @param keep writes down what came of it, with the charge
 * @throws DeputeError BUDGET_EXCEEDED, CALLER_NOT_ALLOWED (the token is not the issuer's), TOKEN_DENIED, LIMIT_EXCEEDED;
 * then nothing was asked
 */
export async function charged(
  deps: ChargeDeps,
  { contract, token }: Payer,
  { ceiling, limitMs, ask }: Judging,
  signal: AbortSignal,
  keep: (tx: WriteTx, judged: Judged) => Promise<void>,
): Promise<Judged> {
  const { store, clock } = deps;
  const place = await store.write(async (tx) => {
    await assertAffordable(tx, contract);
    return holdCharge(tx, { contractId: contract.id, issuer: contract.issuer, cost: ceiling }, clock.now());
  });
  let cost = 0;
  let judged: Judged | undefined;
  try {
    const commit = await reserve(deps, contract.issuer, token, ceiling, limitMs);
    try {
      cost = ceiling;
      judged = await ask(signal);
      cost = judged.cost;
    } catch (error) {
      if (error instanceof DeputeError && error.reason === ErrorReason.LIMIT_EXCEEDED) cost = 0;
      throw error;
    } finally {
      await commit(cost);
    }
    return judged;
  } finally {
    await store.write(async (tx) => {
      await settleCharge(tx, place, cost);
      if (judged !== undefined) await keep(tx, judged);
    });
  }
}

/** Judging may cost as much as the work itself, and then no more. */
async function assertAffordable(tx: WriteTx, { id, constraints }: TaskContract): Promise<void> {
  const spent = await chargesOf(tx, id);
  const allowed = constraints.maxBudgetMicrocents;
  if (spent === 0 || spent < allowed) return;
  throw new DeputeError(ErrorReason.BUDGET_EXCEEDED, "judging this contract's outputs has cost its budget", {
    metadata: { needed: String(spent), allowed: String(allowed), unit: "microcents" },
  });
}

/** Sets the most that judging may cost aside under a token. What it gives charges what it did cost, and never throws. */
async function reserve(
  { tokens, spend, logger }: ChargeDeps,
  issuer: string,
  token: SerializedDCT | undefined,
  ceiling: number,
  limitMs: number,
): Promise<(cost: number) => Promise<void>> {
  // What costs nothing needs no reservation.
  if (token === undefined || ceiling === 0) return async () => {};
  const own = () => ({ headers: ownHeaders("") });
  const { delegatee, result } = await tokens.inspectToken({ token }, own());
  if (result.case !== "scope") throw tokenDenied(result.value);
  if (delegatee !== issuer) {
    throw new DeputeError(
      ErrorReason.CALLER_NOT_ALLOWED,
      "the token that is to pay is not the contract's issuer's",
    );
  }
  const { reservation } = await spend.reserveSpend(
    {
      requestId: `judge ${newId()}`,
      token,
      amountMicrocents: BigInt(ceiling),
      lifetimeSeconds: Math.min(MAX_LIFETIME_S, Math.ceil(limitMs / 1000) + GRACE_S),
    },
    own(),
  );
  const reservationId = reservation?.id ?? "";
  return async (cost) => {
    try {
      // An endpoint that counts more than it may is not paid more than was set aside.
      const amountMicrocents = BigInt(Math.min(cost, ceiling));
      await spend.commitSpend({ reservationId, amountMicrocents }, own());
    } catch (err) {
      // Nobody settles it then, and it counts in full once it is over.
      logger.warn({ err, reservation: reservationId }, "what judging cost could not be charged");
    }
  };
}
