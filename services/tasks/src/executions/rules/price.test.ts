import { create } from "@bufbuild/protobuf";
import { UsageSchema } from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import { ExecutionRequestSchema } from "@depute/contracts/agenta/delegation/v0/execution_request_pb";
import { PricingModel, PricingSchema } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { budgetRefusal, limitOf, priceOf, timesUnits } from "./price.ts";

const MAX = BigInt(Number.MAX_SAFE_INTEGER);
const { FIXED, USAGE_BASED, QUOTE_REQUIRED } = PricingModel;

const asking = (maxAmount: bigint, maxBudget?: bigint, currency = "EUR", metadata = {}) =>
  create(ExecutionRequestSchema, {
    payment: { currency, maxAmount, paymentAuthorizationId: "auth-1" },
    executionConstraints: { ...(maxBudget !== undefined && { maxBudget }) },
    metadata,
  });
const pricing = (pricingModel: PricingModel, amount: bigint, unit?: string) =>
  create(PricingSchema, { pricingModel, amount, currency: "EUR", ...(unit && { unit }) });

test.each([
  [100n, undefined, 100n],
  [100n, 50n, 50n],
  [50n, 100n, 50n],
  [0n, undefined, 0n],
  [100n, 0n, 0n],
])("the limit of %s with a budget of %s is %s", (amount, budget, limit) => {
  expect(limitOf(asking(amount, budget))).toBe(limit);
});

describe("the authorized amount", () => {
  test.each([
    ["the price", asking(250n), pricing(FIXED, 250n), false],
    ["less than the price", asking(249n), pricing(FIXED, 250n), true],
    ["another currency", asking(250n, undefined, "USD"), pricing(FIXED, 250n), true],
    ["nothing, for something free", asking(0n), pricing(FIXED, 0n), false],
    ["one unit", asking(3n), pricing(USAGE_BASED, 3n, "input_units"), false],
    ["less than a unit", asking(2n), pricing(USAGE_BASED, 3n, "input_units"), true],
    ["no quote", asking(9n), pricing(QUOTE_REQUIRED, 0n), true],
    ["an empty quote", asking(9n, undefined, "EUR", { quote_id: " " }), pricing(QUOTE_REQUIRED, 0n), true],
    [
      "a quote that is no text",
      asking(9n, undefined, "EUR", { quote_id: 7 }),
      pricing(QUOTE_REQUIRED, 0n),
      true,
    ],
    ["a quote", asking(9n, undefined, "EUR", { quote_id: "q" }), pricing(QUOTE_REQUIRED, 100n), false],
  ])("%s", (_, request, price, isRefused) => {
    const refusal = budgetRefusal(request, price);
    expect(refusal?.details?.failure_mode).toBe(isRefused ? "budget_authorization_missing" : undefined);
  });
});

describe("the price of several units", () => {
  test.each([
    [100n, 1.1, 110n],
    [3n, 0.1, 1n],
    [1n, 5e-324, 1n],
    [0n, 1e300, 0n],
    [7n, 0, 0n],
    [2n, 1e21, 2n * 10n ** 21n],
    [MAX, 1, MAX],
  ])("%s times %s is %s", (amount, units, expected) => {
    expect(timesUnits(amount, units)).toBe(expected);
  });

  test("is at least the exact product, and less than one microcent above it", () => {
    const units = fc.double({ min: 0, max: 1e6, noNaN: true });
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 1_000_000n }), units, (amount, used) => {
        const total = timesUnits(amount, used);
        expect(Number(total)).toBeGreaterThanOrEqual(Number(amount) * used - 1e-3);
        expect(Number(total)).toBeLessThanOrEqual(Number(amount) * used + 1 + 1e-3);
      }),
    );
  });

  test("grows with the price and with the units", () => {
    const amounts = fc.bigInt({ min: 0n, max: MAX });
    const units = fc.double({ min: 0, max: 1e9, noNaN: true });
    fc.assert(
      fc.property(amounts, amounts, units, units, (a, b, u, v) => {
        const [less, more] = a < b ? [a, b] : [b, a];
        const [few, many] = u < v ? [u, v] : [v, u];
        expect(timesUnits(less, few) <= timesUnits(more, many)).toBe(true);
      }),
    );
  });
});

test("property: a charge never exceeds the limit, for any use, request and quote", () => {
  const amounts = fc.bigInt({ min: 0n, max: MAX });
  const models = fc.constantFrom(FIXED, USAGE_BASED, QUOTE_REQUIRED);
  const units = fc.double({ min: 0, noNaN: true, noDefaultInfinity: true });
  fc.assert(
    fc.property(models, amounts, amounts, units, fc.option(amounts), (model, amount, limit, used, quoted) => {
      const usage = create(UsageSchema, { inputUnits: used });
      const price = priceOf(pricing(model, amount, "input_units"), limit, usage, quoted ?? undefined);
      if ("amount" in price) expect(price.amount >= 0n && price.amount <= limit).toBe(true);
    }),
  );
});
