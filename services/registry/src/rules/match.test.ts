import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { categoryKey, passes, queryWords, score, searchText, wordsOf } from "./match.ts";

const sentiment = searchText({
  id: "sentiment",
  category: "nlp",
  description: "Analyzes text sentiment. Input: text(string). Output: score(float), label(string).",
});
const rate = (query: string, text = sentiment) => score(queryWords(query), text);

describe("wordsOf", () => {
  it.each<[string, string[]]>([
    ["Text-to_speech.v2", ["text", "to", "speech", "v2"]],
    ["  ", []],
    ["ＦＵＬＬ width", ["full", "width"]],
    ["Größe, naïve: 数据", ["größe", "naïve", "数据"]],
  ])("%j", (text, words) => {
    expect(wordsOf(text)).toEqual(words);
  });
});

describe("queryWords", () => {
  it("returns distinct words ignoring case, up to the limit", () => {
    expect(queryWords("Text TEXT text")).toEqual(["text"]);
    expect(queryWords(Array.from({ length: 40 }, (_, i) => `w${i}`).join(" "))).toHaveLength(16);
  });
});

describe("categoryKey", () => {
  it("is equal for names that differ in case", () => {
    expect(categoryKey("NLP")).toBe(categoryKey("nlp"));
    expect(categoryKey("nlp")).not.toBe(categoryKey("nl"));
  });
});

describe("score", () => {
  it.each<[string, string, number]>([
    ["a word of the id", "sentiment", 1],
    ["in another case", "SENTIMENT", 1],
    ["the start of a word of the id", "senti", 0.75],
    ["within a word of the id", "timent", 0.5],
    ["the category", "nlp", 0.8],
    ["a word of the description", "label", 0.6],
    ["the start of one", "analy", 0.6 * 0.75],
    ["two words, one of them there", "sentiment weather", 0.5],
    ["a word that is nowhere", "weather", 0],
    ["no words", "?!", 0],
  ])("%s", (_, query, expected) => {
    expect(rate(query)).toBeCloseTo(expected, 12);
  });

  it("finds a whole word after a prefix match", () => {
    expect(rate("text", searchText({ id: "context-text", category: "x", description: "" }))).toBe(1);
  });

  it("is between 0 and 1, and above 0 only for texts that a store's prefilter finds", () => {
    const words = fc.stringMatching(/^[a-c ]{0,12}$/);
    fc.assert(
      fc.property(words, words, words, words, (query, id, category, description) => {
        const text = searchText({ id, category, description });
        const value = rate(query, text);
        expect(value).toBeGreaterThanOrEqual(0);
        expect(value).toBeLessThanOrEqual(1);
        expect(value > 0).toBe(queryWords(query).some((word) => text.includes(word)));
      }),
    );
  });
});

describe("passes", () => {
  it.each<[number, number, boolean]>([
    [0.6, Math.fround(0.6), true],
    [0.59, Math.fround(0.6), false],
    [0, 0, false],
    [0.1, 0, true],
    [1, 1, true],
  ])("%d against %d", (value, threshold, expected) => {
    expect(passes(value, threshold)).toBe(expected);
  });
});
