import { create, fromJson, type JsonValue } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { TaskOutputSchema, TaskUsageSchema } from "@depute/contracts/depute/tasks/v1/task_pb";
import { TokenBudgetSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import { DETAIL_LEVELS, type DetailLevel, estimateTokens } from "@depute/core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { WireFault } from "../../edge/fault.ts";
import { fittingLevels, fittingPartial, resolveLevel, tokensUsed } from "./budget.ts";

function output(full: JsonValue, compact?: JsonValue, minimal?: string) {
  return create(TaskOutputSchema, {
    full: fromJson(ValueSchema, full),
    ...(compact === undefined ? {} : { compact: fromJson(ValueSchema, compact) }),
    ...(minimal === undefined ? {} : { minimal }),
  });
}

const budget = (maxTokens: number, detailLevel: DetailLevel) =>
  create(TokenBudgetSchema, { maxTokens, detailLevel });

// The full, compact and minimal forms take 10, 4 and 1 language-model tokens of four characters. Of an object, the
// JSON with its quotes counts; of a text, only its characters.
const FULL = { text: "x".repeat(29) };
const COMPACT = { text: "x".repeat(5) };
const MINIMAL = "xxxx";
const ALL = output(FULL, COMPACT, MINIMAL);

describe("resolveLevel", () => {
  test.each([
    ["full fits", 10, "full", "full", FULL],
    ["full steps down to compact", 9, "full", "compact", COMPACT],
    ["full steps down to minimal", 3, "full", "minimal", MINIMAL],
    ["compact is not stepped up", 500, "compact", "compact", COMPACT],
    ["compact steps down to minimal", 3, "compact", "minimal", MINIMAL],
    ["minimal", 1, "minimal", "minimal", MINIMAL],
  ] as const)("%s", (_, tokens, requestedLevel, level, out) => {
    expect(resolveLevel(ALL, budget(tokens, requestedLevel))).toEqual({
      level,
      out,
      tokens: estimateTokens(out),
    });
  });

  test("is compact within 500 tokens without a budget", () => {
    expect(resolveLevel(ALL, undefined).level).toBe("compact");
    const fits = output("x".repeat(2000), undefined, "m");
    expect(resolveLevel(fits, undefined).level).toBe("compact");
    expect(resolveLevel(output("x".repeat(2001), undefined, "m"), undefined).level).toBe("minimal");
  });

  test("replaces a missing level by the next longer one", () => {
    expect(resolveLevel(output(FULL), budget(10, "minimal"))).toEqual({
      level: "minimal",
      out: FULL,
      tokens: 10,
    });
  });

  test("states the needed tokens when even the shortest form does not fit", () => {
    const long = output(FULL, COMPACT, "x".repeat(9));
    const fault = thrownBy(() => resolveLevel(long, budget(2, "full")));
    expect(fault.data).toMatchObject({ reason: "BUDGET_EXCEEDED", needed: 3, allowed: 2 });
    expect(fault.refusal.metadata).toEqual({ needed: "3", allowed: "2", unit: "tokens" });
  });

  test("property: never exceeds the budget", () => {
    const level = fc.constantFrom(...DETAIL_LEVELS);
    const givenBudget = fc.record({
      full: fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<JsonValue>,
      compact: fc.option(fc.string(), { nil: undefined }),
      minimal: fc.option(fc.string(), { nil: undefined }),
    });
    fc.assert(
      fc.property(
        givenBudget,
        fc.integer({ min: 1, max: 40 }),
        level,
        ({ full, compact, minimal }, tokens, requestedLevel) => {
          try {
            const resolved = resolveLevel(output(full, compact, minimal), budget(tokens, requestedLevel));
            expect(estimateTokens(resolved.out)).toBeLessThanOrEqual(tokens);
            expect(DETAIL_LEVELS.indexOf(resolved.level)).toBeGreaterThanOrEqual(
              DETAIL_LEVELS.indexOf(requestedLevel),
            );
          } catch (thrown) {
            if (!(thrown instanceof WireFault)) throw thrown;
            const { needed, allowed } = thrown.data as { needed: number; allowed: number };
            expect(needed).toBeGreaterThan(allowed);
          }
        },
      ),
    );
  });
});

describe("fittingLevels", () => {
  test.each([
    ["all of them", ALL, 10, "full", { minimal: MINIMAL, compact: COMPACT, full: FULL, tokens: 10 }],
    ["without one that does not fit", ALL, 9, "full", { minimal: MINIMAL, compact: COMPACT, tokens: 4 }],
    ["up to the requested level", ALL, 500, "compact", { minimal: MINIMAL, compact: COMPACT, tokens: 4 }],
    ["the shortest", ALL, 500, "minimal", { minimal: MINIMAL, tokens: 1 }],
    [
      "the worker's output represents its own level",
      output(COMPACT),
      500,
      "minimal",
      { compact: COMPACT, tokens: 4 },
    ],
    ["only what fits", output(FULL, FULL, MINIMAL), 3, "compact", { minimal: MINIMAL, tokens: 1 }],
  ] as const)("%s", (_, givenBudget, tokens, requestedLevel, levels) => {
    expect(fittingLevels(givenBudget, budget(tokens, requestedLevel))).toEqual(levels);
  });
});

function thrownBy(run: () => unknown): WireFault {
  try {
    run();
  } catch (thrown) {
    if (thrown instanceof WireFault) return thrown;
  }
  throw new Error("nothing was refused");
}

describe("fittingPartial", () => {
  // The full result takes 10 tokens.
  test.each([
    ["fits unchanged", "compact", 10, "compact", "compact"],
    ["is returned at the lower requested level", "full", 10, "minimal", "minimal"],
    ["keeps a level below the requested one", "minimal", 10, "full", "minimal"],
    ["of no known level is compact", "", 10, "full", "compact"],
    ["is left out if it does not fit", "minimal", 9, "minimal", undefined],
  ] as const)("%s", (_, givenBudget, tokens, requestedLevel, level) => {
    const expected = level === undefined ? undefined : { level, out: FULL, tokens: 10 };
    expect(fittingPartial(FULL, givenBudget, budget(tokens, requestedLevel))).toEqual(expected);
  });

  test("has 500 tokens without a budget", () => {
    expect(fittingPartial("x".repeat(2000), "full", undefined)?.level).toBe("compact");
    expect(fittingPartial("x".repeat(2001), "full", undefined)).toBeUndefined();
  });
});

test.each([
  ["the worker's count", { tokensUsed: 812n }, 812],
  ["the estimate if it states none", undefined, 7],
  ["the estimate if its unit is another", { tokensUsed: 0n, costMicrocents: 5n }, 7],
])("tokens used are %s", (_, usage, expected) => {
  expect(tokensUsed(usage && create(TaskUsageSchema, usage), 7)).toBe(expected);
});
