import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatTime, fromTimestamp, isTime, parseTime, toTimestamp } from "./times.ts";

describe("parseTime", () => {
  it.each([
    ["1970-01-01T00:00:00Z", 0],
    ["1970-01-01T00:00:00.5Z", 500],
    ["1970-01-01T00:00:00.123456789Z", 123],
    ["2024-02-29T23:59:59.999Z", Date.UTC(2024, 1, 29, 23, 59, 59, 999)],
    ["0000-01-01T00:00:00Z", -62_167_219_200_000],
    ["0099-12-31T00:00:00Z", new Date("0099-12-31T00:00:00Z").getTime()],
    ["9999-12-31T23:59:59.999Z", 253_402_300_799_999],
  ])("%s is %i", (text, ms) => {
    expect(parseTime(text)).toBe(ms);
  });

  it.each([
    "",
    "2026-02-30T00:00:00Z",
    "2023-02-29T00:00:00Z",
    "2026-13-01T00:00:00Z",
    "2026-00-01T00:00:00Z",
    "2026-01-00T00:00:00Z",
    "2026-01-01T24:00:00Z",
    "2026-01-01T00:60:00Z",
    "2026-12-31T23:59:60Z",
    "2026-01-01T00:00:00",
    "2026-01-01T00:00:00z",
    "2026-01-01t00:00:00Z",
    "2026-01-01T00:00:00+00:00",
    "2026-01-01T00:00:00.Z",
    "2026-01-01T00:00:00.1234567890Z",
    "2026-01-01 00:00:00Z",
    " 2026-01-01T00:00:00Z",
    "2026-01-01T00:00:00Z\n",
    "+002026-01-01T00:00:00Z",
    "２026-01-01T00:00:00Z",
  ])("refuses %j", (text) => {
    expect(parseTime(text)).toBeUndefined();
    expect(isTime(text)).toBe(false);
  });

  it("reads what formatTime writes", () => {
    fc.assert(
      fc.property(fc.integer({ min: -62_167_219_200_000, max: 253_402_300_799_999 }), (ms) => {
        expect(parseTime(formatTime(ms))).toBe(ms);
        expect(fromTimestamp(toTimestamp(ms))).toBe(ms);
      }),
    );
  });
});

describe("formatTime", () => {
  it.each([Number.NaN, Number.POSITIVE_INFINITY, 253_402_300_800_000, -62_167_219_200_001])(
    "refuses %d",
    (ms) => {
      expect(() => formatTime(ms)).toThrow(RangeError);
    },
  );
});
