import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import type { SerializedDCT } from "@depute/contracts/delegateos/v0/token_pb";
import type { SpendService } from "@depute/contracts/depute/tokens/v1/spend_service_pb";
import type { TokenService } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { type Clock, DeputeError, ErrorReason, randomUuid } from "@depute/core";
import { type Logger, ownHeaders, tokenDenied } from "@depute/service";
import type { Store, WriteTx } from "@depute/store";
import type { TaskContract } from "../rules/documents.ts";
import { insertCharge, sumCharges, updateCharge } from "../store/judge-results.ts";
import type { JudgeOutcome, JudgeRun } from "./judge.ts";

/**
 * GRACE_S: seconds from the end of the judge run to the expiry of its reservation. MAX_LIFETIME_S: the longest lifetime
 * of a reservation that SpendService's contract allows.
 */
const GRACE_S = 60;
const MAX_LIFETIME_S = 86_400;

export interface ChargeDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly tokens: Pick<Client<typeof TokenService>, "inspectToken">;
  readonly spend: Pick<Client<typeof SpendService>, "reserveSpend" | "commitSpend">;
}

/** The contract whose issuer pays for a judge run, and the issuer's token. */
export interface Payer {
  readonly contract: TaskContract;
  /** The token of the contract's issuer. Without a token, only the contract's budget bounds the cost. */
  readonly token: SerializedDCT | undefined;
}

/**
 * Runs a judge and charges the contract's issuer. First reserves the maximum cost on the contract and on every block of
 * the token. Then runs the judge, and charges the actual cost. If the actual cost is unknown, for example after a
 * crash, the whole reservation counts as charged.
 *
 * @param keep stores the result in the transaction that updates the contract's charge
 * @throws DeputeError BUDGET_EXCEEDED, CALLER_NOT_ALLOWED (the token does not belong to the issuer), TOKEN_DENIED,
 * LIMIT_EXCEEDED, and the errors of SpendService.ReserveSpend; after each of these errors, no question was sent
 */
export async function runAndCharge(
  deps: ChargeDeps,
  { contract, token }: Payer,
  { ceiling, limitMs, ask }: JudgeRun,
  signal: AbortSignal,
  keep: (tx: WriteTx, outcome: JudgeOutcome) => Promise<void>,
): Promise<JudgeOutcome> {
  const { store, clock } = deps;
  const place = await store.write(async (tx) => {
    await assertAffordable(tx, contract);
    return insertCharge(tx, { contractId: contract.id, issuer: contract.issuer, cost: ceiling }, clock.now());
  });
  let cost = 0;
  let outcome: JudgeOutcome | undefined;
  try {
    const commit = await reserve(deps, contract.issuer, token, ceiling, limitMs);
    try {
      cost = ceiling;
      outcome = await ask(signal);
      cost = outcome.cost;
    } catch (error) {
      if (error instanceof DeputeError && error.reason === ErrorReason.LIMIT_EXCEEDED) cost = 0;
      throw error;
    } finally {
      await commit(cost);
    }
    return outcome;
  } finally {
    await store.write(async (tx) => {
      await updateCharge(tx, place, cost);
      if (outcome !== undefined) await keep(tx, outcome);
    });
  }
}

/** Refuses a judge run if the cost of earlier runs has reached the contract's budget. */
async function assertAffordable(tx: WriteTx, { id, constraints }: TaskContract): Promise<void> {
  const spent = await sumCharges(tx, id);
  const allowed = constraints.maxBudgetMicrocents;
  if (spent === 0 || spent < allowed) return;
  throw new DeputeError(
    ErrorReason.BUDGET_EXCEEDED,
    "the cost of the judge runs for this contract has reached the contract's budget",
    {
      metadata: { needed: String(spent), allowed: String(allowed), unit: "microcents" },
    },
  );
}

/** Reserves the maximum cost under a token. Returns a function that charges the actual cost and never throws. */
async function reserve(
  { tokens, spend, logger }: ChargeDeps,
  issuer: string,
  token: SerializedDCT | undefined,
  ceiling: number,
  limitMs: number,
): Promise<(cost: number) => Promise<void>> {
  // A run without a token, or without a cost, needs no reservation.
  if (token === undefined || ceiling === 0) return async () => {};
  const ownOptions = () => ({ headers: ownHeaders("") });
  const { delegatee, result } = await tokens.inspectToken({ token }, ownOptions());
  if (result.case !== "scope") throw tokenDenied(result.value);
  if (delegatee !== issuer) {
    throw new DeputeError(
      ErrorReason.CALLER_NOT_ALLOWED,
      "the paying token does not belong to the contract's issuer; send a token of the issuer",
    );
  }
  const { reservation } = await spend.reserveSpend(
    {
      requestId: `judge ${randomUuid()}`,
      token,
      amountMicrocents: BigInt(ceiling),
      lifetime: durationFromMs(1000 * Math.min(MAX_LIFETIME_S, Math.ceil(limitMs / 1000) + GRACE_S)),
    },
    ownOptions(),
  );
  const reservationId = reservation?.id ?? "";
  return async (cost) => {
    try {
      // Charges at most the reserved amount, because an endpoint may report more output tokens than the maximum.
      const amountMicrocents = BigInt(Math.min(cost, ceiling));
      await spend.commitSpend({ reservationId, amountMicrocents }, ownOptions());
    } catch (err) {
      // If the charge fails, the reservation stays unsettled. The reservation then counts in full, even after its
      // expiry.
      logger.warn({ err, reservation: reservationId }, "charge of a judge failed");
    }
  };
}
