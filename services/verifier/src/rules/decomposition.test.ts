import fc from "fast-check";
import { expect, test } from "vitest";
import { type ContractParts, contractBody } from "../testing/contracts.ts";
import { assertBudget, type Part, validatePlan } from "./decomposition.ts";
import type { TaskContract } from "./documents.ts";

const contract = (parts: ContractParts): TaskContract => ({ ...contractBody(parts), signature: "" });
const parent = contract({
  id: "ct_000000000000",
  maxBudgetMicrocents: 100,
  deadline: "2026-02-01T00:00:00Z",
  maxChainDepth: 2,
  requiredCapabilities: ["docs:read", "web:fetch"],
});
const idOf = (n: number) => `ct_${n.toString(16).padStart(12, "0")}`;
const part = (n: number, change: ContractParts = {}, dependsOn: number[] = []): Part => ({
  contract: contract({ id: idOf(n), maxBudgetMicrocents: 10, maxChainDepth: 1, ...change }),
  dependsOn: dependsOn.map(idOf),
});

test("sequential parts depend on the one before, parallel parts on those they list", () => {
  const three = [part(1), part(2), part(3)];
  expect([...validatePlan({ parent, mode: "sequential", parts: three })]).toEqual([
    [idOf(1), []],
    [idOf(2), [idOf(1)]],
    [idOf(3), [idOf(2)]],
  ]);
  const diamond = [part(4, {}, [2, 3]), part(1), part(2, {}, [1]), part(3, {}, [1])];
  expect(validatePlan({ parent, mode: "parallel", parts: diamond }).get(idOf(4))).toEqual([idOf(2), idOf(3)]);
});

test.each<[what: string, parts: Part[], field: string, mode?: "sequential"]>([
  ["two parts with one id", [part(1), part(1)], "parts"],
  ["the parent itself", [part(0)], "parts[0].contract.id"],
  [
    "a deadline after the parent's",
    [part(1, { deadline: "2026-02-01T00:00:00.001Z" })],
    "parts[0].contract.constraints.deadline",
  ],
  [
    "as many hops as the parent",
    [part(1, { maxChainDepth: 2 })],
    "parts[0].contract.constraints.max_chain_depth",
  ],
  [
    "a capability that the parent lacks",
    [part(1), part(2, { requiredCapabilities: ["docs:read", "docs:write"] })],
    "parts[1].contract.constraints.required_capabilities[1]",
  ],
  ["an unknown dependency", [part(1, {}, [7])], "parts[0].depends_on"],
  ["a part that waits for itself", [part(1, {}, [1])], "parts"],
  ["a circle", [part(1), part(2, {}, [4]), part(3, {}, [2]), part(4, {}, [3])], "parts"],
  ["dependencies in a sequence", [part(1), part(2, {}, [1])], "parts[1].depends_on", "sequential"],
  [
    "a deadline before that of a dependency",
    [part(1), part(2, { deadline: "2026-01-31T00:00:00Z" })],
    "parts[1].contract.constraints.deadline",
    "sequential",
  ],
])("refuses: %s", (_, parts, field, mode = "parallel" as never) => {
  expect(() => validatePlan({ parent, mode, parts })).toThrow(
    expect.objectContaining({ violations: [expect.objectContaining({ field })] }),
  );
});

test("refuses to split a contract that allows no delegation", () => {
  const last = { ...parent, constraints: { ...parent.constraints, maxChainDepth: 0 } };
  expect(() =>
    validatePlan({ parent: last, mode: "parallel", parts: [part(1, { maxChainDepth: 0 })] }),
  ).toThrow("allows no further delegation");
});

test("accepts budgets exactly up to the rest of the parent's budget", () => {
  const amounts = fc.array(fc.nat(Number.MAX_SAFE_INTEGER), { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(amounts, fc.nat(100), (budgets, plannedBudget) => {
      const parts = budgets.map((maxBudgetMicrocents, i) => part(i + 1, { maxBudgetMicrocents }));
      const fits = budgets.reduce((sum, each) => sum + BigInt(each), BigInt(plannedBudget)) <= 100n;
      const run = () => assertBudget(parent, parts, plannedBudget);
      if (fits) expect(run).not.toThrow();
      else expect(run).toThrow("exceed the contract's remaining");
    }),
  );
  expect(() => assertBudget(parent, [part(1, { maxBudgetMicrocents: 60 })], 40)).not.toThrow();
  expect(() => assertBudget(parent, [part(1, { maxBudgetMicrocents: 61 })], 40)).toThrow();
});
