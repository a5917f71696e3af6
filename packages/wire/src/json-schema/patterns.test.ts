import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compilePattern, UnsupportedPattern } from "./patterns.ts";

const SAMPLES = [
  "",
  "a",
  "A",
  "ab",
  "aab",
  "a\nb",
  "a\u2028b",
  " ",
  "\u00a0",
  "\ufeff",
  "\v",
  "é",
  "É",
  "😀",
  "😀b",
  "-",
  "_",
  "]",
  "[",
  "{",
  "}",
  "a{,5}",
  "/",
  "\\",
  "123",
  "-1.5e3",
  "2026-01-02",
  "foo.bar",
  "x@y.z",
  "\0",
  "\b",
  "\t",
  "Ω",
  "ω",
  "word boundary",
  "^",
  "$",
  "a\n",
];

describe("patterns have JavaScript's meaning", () => {
  test.each([
    ["^a+$", ""],
    ["A", "i"],
    ["^b", "m"],
    ["^b", ""],
    ["a.b", ""],
    ["a.b", "s"],
    ["\\s", ""],
    ["\\S", ""],
    ["[\\s]", ""],
    ["[^\\s]", ""],
    ["[\\S]", ""],
    ["[^\\S]", ""],
    ["^[^]$", "u"],
    ["[]", ""],
    ["\\d+", ""],
    ["\\bword\\b", ""],
    ["a$", ""],
    ["$", ""],
    ["[\\b]", ""],
    ["\\/", ""],
    ["[\\w.-]+@[\\w.-]+", ""],
    ["\\-", ""],
    ["a{,5}", ""],
    ["^a{2}b$", ""],
    ["^a{1,}b", ""],
    ["\\u0041", ""],
    ["\\u{1f600}", "u"],
    ["\\ud83d\\ude00", "u"],
    ["^.$", "u"],
    ["\\p{L}", "u"],
    ["\\p{Lu}", "u"],
    ["\\p{Script=Greek}", "u"],
    ["\\P{Letter}", "u"],
    ["\\p{digit}", "u"],
    ["\\P{punct}", "u"],
    ["\\p{cntrl}", "u"],
    ["\\p{Combining_Mark}", "u"],
    ["\\p{Nonspacing_Mark}", "u"],
    ["\\p{Letter_Number}", "u"],
    ["\\p{Connector_Punctuation}", "u"],
    ["\\p{Math_Symbol}", "u"],
    ["\\p{Line_Separator}", "u"],
    ["\\p{Private_Use}", "u"],
    ["\\p{Format}", "u"],
    ["\\x41", ""],
    ["\\cJ", ""],
    ["\\0", ""],
    ["\\v", ""],
    ["(?<year>\\d{4})-(\\d\\d)", ""],
    ["(?:a|b)+", ""],
    ["[a-c]", ""],
    ["[-a]", ""],
    ["[a-]", ""],
    ["[\\]\\[]", ""],
    ["]", ""],
    ["}", ""],
    ["b", "y"],
    ["a", "y"],
    ["a", "g"],
    ["[$^|.*+?(){}]", ""],
    ["a|", ""],
    ["[&&[:alpha:]]", ""],
  ])("/%s/%s", (pattern, flags) => {
    const ours = compilePattern(pattern, flags);
    for (const text of SAMPLES) {
      if (flags === "m" && text.includes("\u2028")) continue;
      expect({ text, found: ours.test(text) }).toEqual({
        text,
        found: new RegExp(pattern, flags).test(text),
      });
    }
  });

  const atom = fc.constantFrom(
    "a",
    "b",
    ".",
    "\\s",
    "\\S",
    "\\d",
    "\\w",
    "\\W",
    "[ab]",
    "[^a]",
    "[^\\s]",
    "[\\S-]",
    "\\b",
    "^",
    "$",
    "\\.",
    "-",
    "é",
    "\\n",
    "{",
    "(?:ab)",
    "(b|a)",
  );
  const repeat = fc.constantFrom("", "", "", "*", "+", "?", "{2}", "{0,2}", "*?");
  const pattern = fc.array(fc.tuple(atom, repeat), { maxLength: 6 }).map((parts) => parts.flat().join(""));
  const text = fc
    .array(fc.constantFrom("a", "b", "é", " ", "\n", "\u2028", "-", "1", "{", "."), { maxLength: 8 })
    .map((c) => c.join(""));
  test("any pattern of these parts that both engines accept finds the same match", () => {
    fc.assert(
      fc.property(pattern, text, fc.constantFrom("", "i", "m", "s"), (source, subject, flags) => {
        let ours: { test(text: string): boolean };
        try {
          ours = compilePattern(source, flags);
        } catch (error) {
          expect(error).toBeInstanceOf(UnsupportedPattern);
          return;
        }
        if (flags === "m" && subject.includes("\u2028")) return;
        expect(ours.test(subject)).toBe(new RegExp(source, flags).test(subject));
      }),
      { numRuns: 2000 },
    );
  });
});

describe("refused", () => {
  test.each([
    ["(?=a)", ""],
    ["(?!a)", ""],
    ["(?<=a)b", ""],
    ["(?<!a)b", ""],
    ["(a)\\1", ""],
    ["(?<n>a)\\k<n>", ""],
    ["a{1001}", ""],
    ["(a{1000}){1000}", ""],
    ["(", ""],
    ["[", ""],
    ["a**", ""],
    ["\\A", ""],
    ["\\z", ""],
    ["\\Qa\\E", ""],
    ["\\a", ""],
    ["\\p{L}", ""],
    ["(?i)a", ""],
    ["(?P<n>a)", ""],
    ["[\\d-z]", ""],
    ["[a-\\d]", ""],
    ["\\01", ""],
    ["a", "v"],
    ["a", "x"],
    ["a", "ii"],
    ["\\p{Nope}", "u"],
    ["\ud800", ""],
    ["[b-a]", ""],
    ["a".repeat(1025), ""],
  ])("/%s/%s", (pattern, flags) => {
    expect(() => compilePattern(pattern, flags)).toThrow(UnsupportedPattern);
  });
});

test("a pattern with exponential backtracking is linear here", () => {
  const hostile = compilePattern("^(a+)+$");
  expect(hostile.test(`${"a".repeat(100_000)}!`)).toBe(false);
  expect(hostile.test("a".repeat(100_000))).toBe(true);
}, 5_000);

test("with the flag m only \\n ends a line", () => {
  const pattern = compilePattern("^b$", "m");
  expect(["a\nb", "a\u2028b", "a\rb"].map((text) => pattern.test(text))).toEqual([true, false, false]);
});
