import { describe, expect, test } from "vitest";
import { lineOf, shownPart, visibleText } from "./text.ts";

describe("visibleText", () => {
  test.each([
    ["right-to-left override", "a\u202egnp.exe", "a‹U+202E›gnp.exe"],
    ["isolates", "\u2066x\u2069", "‹U+2066›x‹U+2069›"],
    ["a null and an escape", "\u0000\u001b[2J", "‹U+0000›‹U+001B›[2J"],
    ["zero width", "pay\u200bpal", "pay‹U+200B›pal"],
    ["a tag character", "a\u{e0041}", "a‹U+E0041›"],
    ["a lone surrogate", "a\ud800b", "a‹U+D800›b"],
    ["markup", "<img src=x onerror=alert(1)>", "<img src=x onerror=alert(1)>"],
    ["Arabic and emoji", "سلام 👋🏽", "سلام 👋🏽"],
    ["tab and newline", "a\tb\nc", "a\tb\nc"],
  ])("shows %s", (_, text, shownText) => {
    expect(visibleText(text)).toBe(shownText);
  });
});

test("a long text is cut between characters", () => {
  expect(shownPart("abcdef", 4)).toEqual({ text: "abcd", more: 2 });
  expect(shownPart("abc👋def", 4)).toEqual({ text: "abc", more: 5 });
  expect(shownPart("abc", 4)).toEqual({ text: "abc", more: 0 });
});

test("a cell of a table has one line", () => {
  expect(lineOf("  one\n\ttwo  ")).toBe("one two");
  expect(lineOf("abcdef", 3)).toBe("abc…");
});
