import type { JsonValue } from "@bufbuild/protobuf";
import fc from "fast-check";
import { expect, test } from "vitest";
import { DETAIL_LEVELS, estimateTokens, type GivenLevels, resolveDetail } from "./detail.ts";

const levels: GivenLevels = { full: "f".repeat(400), compact: "c".repeat(80), minimal: "m".repeat(8) };
const onlyFull: GivenLevels = { full: "f".repeat(400), compact: undefined, minimal: undefined };

test.each<[JsonValue, number]>([
  ["", 0],
  ["abcd", 1],
  ["abcde", 2],
  [{ a: 1 }, 2],
  [null, 1],
])("%j is estimated at %d tokens", (value, tokens) => {
  expect(estimateTokens(value)).toBe(tokens);
});

test.each<[string, number, GivenLevels, string, number]>([
  ["full", 100, levels, "full", 100],
  ["full", 99, levels, "compact", 20],
  ["full", 19, levels, "minimal", 2],
  ["compact", 1000, levels, "compact", 20],
  ["minimal", 1000, levels, "minimal", 2],
  ["unheard of", 1000, levels, "compact", 20],
  ["minimal", 100, onlyFull, "minimal", 100],
])("%s within %d tokens", (detailLevel, maxTokens, levels, level, tokens) => {
  expect(resolveDetail(levels, { maxTokens, detailLevel })).toMatchObject({ level, tokens });
});

test("without a budget it is compact within 500 tokens", () => {
  expect(resolveDetail(levels)).toMatchObject({ level: "compact" });
});

test("the refusal states the needed tokens when even the shortest form does not fit", () => {
  expect(() => resolveDetail(levels, { maxTokens: 1, detailLevel: "full" })).toThrow(
    expect.objectContaining({ metadata: { needed: "2", allowed: "1", unit: "tokens" } }),
  );
});

test("the result never exceeds the budget or the requested level", () => {
  fc.assert(
    fc.property(
      fc.record({
        full: fc.jsonValue(),
        compact: fc.option(fc.jsonValue(), { nil: undefined }),
        minimal: fc.option(fc.string(), { nil: undefined }),
      }),
      fc.nat(30),
      fc.constantFrom(...DETAIL_LEVELS),
      (levels, maxTokens, detailLevel) => {
        let resolved: ReturnType<typeof resolveDetail>;
        try {
          resolved = resolveDetail(levels as GivenLevels, { maxTokens, detailLevel });
        } catch {
          return;
        }
        expect(resolved.tokens).toBeLessThanOrEqual(maxTokens);
        expect(DETAIL_LEVELS.indexOf(resolved.level)).toBeGreaterThanOrEqual(
          DETAIL_LEVELS.indexOf(detailLevel),
        );
      },
    ),
  );
});
