import type { ExecutionError, Usage } from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import { ErrorCode } from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import type { ExecutionRequest } from "@depute/contracts/agenta/delegation/v0/execution_request_pb";
import { type Pricing, PricingModel } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import { failed } from "./refusal.ts";

/** The key in a request's metadata whose value is the id of a quote. */
export const QUOTE = "quote_id";

/** Returns the maximum charge, in minor units: the lesser of the authorized amount and the budget. */
export function limitOf({ payment, executionConstraints }: ExecutionRequest): bigint {
  const authorized = payment?.maxAmount ?? 0n;
  const budget = executionConstraints?.maxBudget;
  return budget !== undefined && budget < authorized ? budget : authorized;
}

/**
 * Returns the refusal of a request whose budget does not fit the offer's price; otherwise undefined. The currency must
 * be the offer's. The budget must cover a fixed price, or one unit of a usage-based price, unless a unit is free.
 * Depute's choice: a request names its quote in its metadata (`quote_id`), because the protocol has no message for
 * quotes.
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
    return failed(mode, `the price requires a quote: name one in metadata.${QUOTE}`, { currency });
  }
  if (limit >= amount) return undefined;
  const what = pricingModel === PricingModel.FIXED ? "the price" : `one of ${pricing.unit ?? "its units"}`;
  const numbers = { currency, needed: Number(amount), allowed: Number(limit) };
  return failed(mode, `${what} is ${amount}, but only ${limit} is allowed`, numbers);
}

/** The cost of the work, or the error if the cost exceeds the limit. */
export type Price = { readonly amount: bigint } | { readonly error: ExecutionError };

/**
 * Returns the final amount of an execution, in minor units: the fixed price; the price for each used unit, rounded up;
 * or the quoted amount. Work that costs more than the buyer's limit is an error.
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
  const message = `the work costs ${amount}, but only ${limit} is allowed`;
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

/** Returns the worker's reported usage in the price's unit; 0 if the worker reported none. */
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

/**
 * Returns the amount for a number of units, rounded up. The calculation uses the shortest decimal form of `units`, so
 * 100 times 1.1 is 110.
 */
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
