import { describe, expect, test } from "vitest";
import { score, summarize } from "./sentiment.ts";
import { collectTexts } from "./texts.ts";

describe("score", () => {
  test.each([
    ["This is a wonderful, excellent tool.", "positive"],
    ["A horrible bug causes terrible data loss.", "negative"],
    ["The function takes two arguments.", "neutral"],
    ["This is not good.", "negative"],
    ["It isn't bad.", "positive"],
    ["constructor __proto__ toString", "neutral"],
    ["", "neutral"],
  ])("%s -> %s", (text, label) => {
    expect(score(text).label).toBe(label);
  });

  test("a word's valence is the lexicon's", () => {
    expect(score("abandon").score).toBe(-2);
  });
});

test("summarize counts every text once", () => {
  const texts = ["good", "bad", "table"].map(score);
  expect(summarize(texts)).toEqual({ count: 3, positive: 1, negative: 1, neutral: 1, mean_score: 0 });
});

describe("collectTexts", () => {
  const texts = collectTexts(500);

  test("finds the requested number of distinct paragraphs, and the same ones each time", () => {
    expect(new Set(texts).size).toBe(500);
    expect(collectTexts(500)).toEqual(texts);
  });

  test("finds prose, neither code nor tables", () => {
    for (const text of texts) {
      expect(text.length).toBeGreaterThanOrEqual(60);
      expect(text).not.toMatch(/^(```|\||<|#)/);
    }
  });
});
