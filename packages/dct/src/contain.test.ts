import fc from "fast-check";
import { expect, test } from "vitest";
import { containmentBudget, contains, containsByWalk } from "./chain.ts";
import { type Pattern, parsePattern } from "./glob.ts";

const pattern = (text: string): Pattern => {
  const parsed = parsePattern(text, "docs");
  return "problem" in parsed ? expect.fail(text) : parsed;
};

test("property: the fast answer equals the walk's answer", () => {
  const segment = fc.constantFrom("a", "a", "b", "*", "**");
  const segments = fc.array(segment, { minLength: 1, maxLength: 6 });
  const counts = { yes: 0, no: 0 };
  fc.assert(
    fc.property(segments, segments, fc.nat(3), fc.constantFrom("", "/"), (outer, inner, shared, slash) => {
      // The two patterns share their first segments, because independent random patterns would rarely contain each
      // other.
      const [parent, child] = [outer, [...outer.slice(0, shared), ...inner]].map((all) =>
        pattern(`/${all.join("/")}${slash}`),
      ) as [Pattern, Pattern];
      const answer = containsByWalk(parent, child, containmentBudget());
      expect(contains(parent, child)).toBe(answer);
      counts[answer ? "yes" : "no"]++;
    }),
    { numRuns: 4000 },
  );
  expect(Math.min(counts.yes, counts.no)).toBeGreaterThan(200);
});

test("property: each answer is charged to the budget, and an empty budget gives no", () => {
  const segments = fc.array(fc.constantFrom("a", "*", "**"), { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(segments, (all) => {
      const one = pattern(`/${all.join("/")}`);
      const budget = { remainingSteps: 0 };
      expect(contains(one, one, budget)).toBe(false);
      expect(budget.remainingSteps).toBeLessThan(0);
    }),
  );
});
