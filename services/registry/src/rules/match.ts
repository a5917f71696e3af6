/** The weight of a match in each field of a capability. */
const FIELD_WEIGHTS = [
  ["id", 1],
  ["category", 0.8],
  ["description", 0.6],
] as const;

/** The weight of a match, by how the query word occurs: as a whole word, at the start of a word, or within a word. */
const WHOLE_WORD = 1;
const WORD_START = 0.75;
const WITHIN_WORD = 0.5;

/** Maximum number of words of a query that count. The search ignores further words. */
export const MAX_QUERY_WORDS = 16;

const WORD = /[\p{L}\p{N}\p{M}]+/gu;

/** Returns the normalized words of a text: in Unicode form NFKC, in lower case, and without punctuation. */
export function wordsOf(text: string): string[] {
  return text.normalize("NFKC").toLowerCase().match(WORD) ?? [];
}

/** Returns the search key of a category. Categories that differ only in case have the same key. */
export function categoryKey(category: string): string {
  return category.normalize("NFKC").toLowerCase();
}

/** Returns the distinct words of a query, at most {@link MAX_QUERY_WORDS}. A query without words matches nothing. */
export function queryWords(query: string): string[] {
  return [...new Set(wordsOf(query))].slice(0, MAX_QUERY_WORDS);
}

/**
 * Returns the searched text of a capability: id, category and description, each on a line. Every capability with a
 * score above zero has a query word in this text. So a store can use this text to find the candidates.
 */
export function searchText(capability: { id: string; category: string; description: string }): string {
  return FIELD_WEIGHTS.map(([field]) => wordsOf(capability[field]).join(" ")).join("\n");
}

/**
 * Returns the score of a capability for a query: from 0 (no match) to 1 (each query word is a word of the id). Each
 * query word counts with the weight of its best match, and the score is the mean of these weights. Equal inputs give
 * equal scores on every machine.
 *
 * @param words the result of {@link queryWords}
 * @param text the result of {@link searchText}
 */
export function score(words: readonly string[], text: string): number {
  if (words.length === 0) return 0;
  const lines = text.split("\n");
  let sum = 0;
  for (const word of words) {
    let best = 0;
    FIELD_WEIGHTS.forEach(([, weight], line) => {
      best = Math.max(best, weight * standing(word, lines[line] ?? ""));
    });
    sum += best;
  }
  return sum / words.length;
}

function standing(word: string, line: string): number {
  let best = 0;
  for (let at = line.indexOf(word); at >= 0; at = line.indexOf(word, at + 1)) {
    const starts = at === 0 || line[at - 1] === " ";
    const end = at + word.length;
    const ends = end === line.length || line[end] === " ";
    if (starts && ends) return WHOLE_WORD;
    best = Math.max(best, starts ? WORD_START : WITHIN_WORD);
  }
  return best;
}

/**
 * Whether a score reaches the threshold. The contract's threshold has single precision, so this function rounds the
 * score in the same way. A capability without any query word never passes.
 */
export function passes(value: number, threshold: number): boolean {
  return value > 0 && Math.fround(value) >= Math.fround(threshold);
}

/** The members by which a ranked list is sorted. */
export interface Ranked {
  readonly score: number;
  readonly id: string;
  readonly agentId: string;
}

/**
 * Compares two entries of a ranked list. Higher scores come first. Entries with equal scores are sorted by id, then
 * by agent, so no two entries are equal.
 */
export function compareRanked(a: Ranked, b: Ranked): number {
  return b.score - a.score || order(a.id, b.id) || order(a.agentId, b.agentId);
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
