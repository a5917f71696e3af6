import { describe, expect, test } from "vitest";
import { wholeSeconds, withFraction } from "./contexts.ts";

const envelope = (ttl_s: unknown, more: object = {}) => ({ envelope: { ttl_s, ...more } });

describe("a time to live", () => {
  test.each([
    ["a whole number", envelope(60), envelope(60)],
    ["a fraction", envelope(1.5), envelope(2, { ttl_ms: 1500 })],
    ["less than a millisecond", envelope(0.0001), envelope(1, { ttl_ms: 1 })],
    ["nothing", envelope(0), envelope(0)],
    ["a negative number", envelope(-0.5), envelope(-0.5)],
    ["a text", envelope("60"), envelope("60")],
    ["a member ttl_ms of the client", envelope(60, { ttl_ms: 1 }), envelope(60)],
    ["a missing envelope", { envelope: null }, { envelope: null }],
    ["a value that is not an object", [1], [1]],
  ])("of %s", (_, params, expected) => {
    expect(wholeSeconds(params, "envelope")).toEqual(expected);
  });

  test("is returned unchanged", () => {
    expect(withFraction({ id: "a", ttl_s: 2, ttl_ms: 1500 })).toEqual({ id: "a", ttl_s: 1.5 });
    expect(withFraction({ id: "a", ttl_s: 2 })).toEqual({ id: "a", ttl_s: 2 });
  });
});
