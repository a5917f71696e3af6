import { expect, test } from "vitest";
import { dollars } from "./money.ts";

test.each([
  [0n, "$0.0000"],
  [1_000n, "$0.000010"],
  [12_000_000n, "$0.1200"],
  [250_000_000n, "$2.50"],
])("%s microcents are %s", (amount, text) => {
  expect(dollars(amount)).toBe(text);
});
