import fc from "fast-check";
import { expect, test } from "vitest";
import { parseTime } from "./time.ts";

/** Parses a time by JavaScript's Date, which is slow but reliable. */
function byCalendar(text: string): number | undefined {
  if (!/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{3})?Z$/.test(text)) return undefined;
  const ms = Date.parse(text);
  if (!Number.isFinite(ms)) return undefined;
  return new Date(ms).toISOString() === (text.length === 20 ? text.replace("Z", ".000Z") : text)
    ? ms
    : undefined;
}

const digit = fc.constantFrom(..."0123456789");
const two = fc.oneof({ weight: 4, arbitrary: fc.constantFrom("01", "02", "12", "28", "29") }, digits(2));

test("property: reads exactly the valid calendar times", () => {
  const year = fc.oneof(digits(4), fc.constantFrom("0000", "1900", "2000", "2024", "2100", "9999"));
  let times = 0;
  fc.assert(
    fc.property(year, two, two, two, two, two, fc.option(digits(3)), (y, mo, d, h, mi, s, ms) => {
      const text = `${y}-${mo}-${d}T${h}:${mi}:${s}${ms === null ? "" : `.${ms}`}Z`;
      expect(parseTime(text)).toBe(byCalendar(text));
      if (parseTime(text) !== undefined) times++;
    }),
    { numRuns: 2000 },
  );
  expect(times).toBeGreaterThan(300);
});

test("reads every day of four centuries, and refuses days outside a month", () => {
  for (let ms = Date.UTC(1896, 0); ms < Date.UTC(2304, 0); ms += 86_400_000) {
    expect(parseTime(new Date(ms).toISOString())).toBe(ms);
  }
  for (let month = 1; month <= 12; month++) {
    for (const year of [1900, 2000, 2023, 2024]) {
      for (const day of [0, 28, 29, 30, 31, 32]) {
        const text = `${year}-${String(month).padStart(2, "0")}-${String(day).padStart(2, "0")}T00:00:00Z`;
        expect(parseTime(text)).toBe(byCalendar(text));
      }
    }
  }
});

test("property: refuses one replaced character unless the time stays valid", () => {
  const good = "2024-02-29T23:59:59.999Z";
  const anyCharacter = fc.oneof(
    digit,
    fc.constantFrom(..."-:.TZtz +/\u0660\uff10"),
    fc.string({ maxLength: 2 }),
  );
  fc.assert(
    fc.property(fc.nat(good.length), anyCharacter, fc.nat(1), (at, inserted, removedCount) => {
      const text = good.slice(0, at) + inserted + good.slice(at + removedCount);
      expect(parseTime(text)).toBe(byCalendar(text));
    }),
    { numRuns: 1000 },
  );
});

function digits(count: number): fc.Arbitrary<string> {
  return fc.array(digit, { minLength: count, maxLength: count }).map((all) => all.join(""));
}
