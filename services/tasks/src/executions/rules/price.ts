import type { ExecutionError, Usage } from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import { ErrorCode } from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import type { ExecutionRequest } from "@depute/contracts/agenta/delegation/v0/execution_request_pb";
import { type Pricing, PricingModel } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import { failed } from "./refusal.ts";

/** The member of a request's metadata that names a quote. */
export const QUOTE = "quote_id";

/** The most that may be charged, in minor units: the lesser of what is authorized and what the work may cost. */
export function limitOf({ payment, executionConstraints }: ExecutionRequest): bigint {
  const authorized = payment?.maxAmount ?? 0n;
  const budget = executionConstraints?.maxBudget;
  return budget !== undefined && budget < authorized ? budget : authorized;
}

/**
 * Why a request does not pay for what the offer asks; undefined when it may.
 *
 * Depute's choice: the protocol has no message for a quote, so an offer that needs one is bought with the quote's id in the
 * request's metadata (`quote_id`), and refused without. Of a usage-based price one unit has to be covered, unless it is free.
 */
export function budgetRefusal(request: ExecutionRequest, pricing: Pricing): ExecutionError | undefined {
  const { pricingModel, currency, amount } = pricing;
  const limit = limitOf(request);
  const mode = "budget_authorization_missing";
  if (request.payment?.currency !== currency) {
    return failed(mode, `the offer's currency is ${currency}`, { currency });
  }
  if (pricingModel === PricingModel.QUOTE_REQUIRED) {
    const quote = request.metadata?.[QUOTE];
    if (typeof quote === "string" && quote.trim() !== "") return undefined;
    return failed(mode, `the price needs a quote: metadata.${QUOTE} names none`, { currency });
  }
  if (limit >= amount) return undefined;
  const what = pricingModel === PricingModel.FIXED ? "the price" : `one of ${pricing.unit ?? "its units"}`;
  const numbers = { currency, needed: Number(amount), allowed: Number(limit) };
  return failed(mode, `${what} is ${amount} and ${limit} is allowed`, numbers);
}

/** What work cost, or that it cost more than was allowed. */
export type Price = { readonly amount: bigint } | { readonly error: ExecutionError };

/**
 * The final amount of work that was done, in minor units: as offered for a fixed price; the amount for each unit used,
 * rounded up, for a usage-based one; what the seller says was agreed on for a quoted one. Nobody is ever charged more than
 * the limit: work that would cost more has failed.
 */
export function priceOf(
  pricing: Pricing,
  limit: bigint,
  usage: Usage | undefined,
  quotedAmount?: bigint,
): Price {
  const amount = amountOf(pricing, usage, quotedAmount);
  if (amount <= limit) return { amount };
  const numbers = { currency: pricing.currency, needed: String(amount), allowed: Number(limit) };
  const message = `the work costs ${amount} and ${limit} is allowed`;
  return { error: failed(ErrorCode.BUDGET_EXCEEDED, message, numbers) };
}

function amountOf({ pricingModel, amount, unit }: Pricing, usage: Usage | undefined, quoted?: bigint) {
  switch (pricingModel) {
    case PricingModel.USAGE_BASED:
      return timesUnits(amount, unitsOf(usage, unit));
    case PricingModel.QUOTE_REQUIRED:
      return quoted ?? amount;
    default:
      return amount;
  }
}

/** What was used of the unit that the price names; what a seller does not report is not charged. */
function unitsOf(usage: Usage | undefined, unit: string | undefined): number {
  switch (unit) {
    case "input_units":
      return usage?.inputUnits ?? 0;
    case "output_units":
      return usage?.outputUnits ?? 0;
    case "compute_seconds":
      return usage?.computeSeconds ?? 0;
    default:
      return 0;
  }
}

/** An amount for each unit, rounded up, of the number that the shortest decimal of `units` says: 100 times 1.1 is 110. */
export function timesUnits(amount: bigint, units: number): bigint {
  if (!(units > 0) || !Number.isFinite(units)) return 0n;
  const [digits = "0", exponent = "0"] = String(units).split("e");
  const [whole = "0", fraction = ""] = digits.split(".");
  const scale = Number(exponent) - fraction.length;
  const product = amount * BigInt(whole + fraction);
  if (scale >= 0) return product * 10n ** BigInt(scale);
  const divisor = 10n ** BigInt(-scale);
  return (product + divisor - 1n) / divisor;
}
