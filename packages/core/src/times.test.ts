import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatTime, fromTimestamp, isTime, parseOffsetTime, parseTime, toTimestamp } from "./times.ts";

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

  it("reads the output of formatTime", () => {
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

const NOW = Date.UTC(2026, 0, 1);

describe("parseOffsetTime", () => {
  it.each<[string, number | undefined]>([
    ["2026-01-01T00:00:00Z", NOW],
    ["2026-01-01t02:30:00.5+02:30", NOW + 500],
    ["2025-12-31T19:00:00-05:00", NOW],
    ["2025-12-31T23:59:60Z", NOW],
    ["2026-01-01T00:00:00.1234567890123Z", NOW + 123],
    ["2026-13-01T00:00:00Z", undefined],
    ["2026-01-01T00:00:00", undefined],
    ["yesterday", undefined],
  ])("%s", (text, expected) => {
    expect(parseOffsetTime(text)).toBe(expected);
  });

  it("reads one instant equally in every offset", () => {
    const offsets = fc.integer({ min: -14 * 60, max: 14 * 60 });
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 4e12 }), offsets, (time, offset) => {
        const local = new Date(time + offset * 60_000).toISOString().slice(0, -1);
        const [hours, minutes] = [Math.floor(Math.abs(offset) / 60), Math.abs(offset) % 60];
        const two = (value: number) => String(value).padStart(2, "0");
        const text = `${local}${offset < 0 ? "-" : "+"}${two(hours)}:${two(minutes)}`;
        expect(parseOffsetTime(text)).toBe(time);
      }),
    );
  });
});
