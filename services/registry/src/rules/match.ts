/** How much a query's word counts by the field that it stands in. */
const FIELD_WEIGHTS = [
  ["id", 1],
  ["category", 0.8],
  ["description", 0.6],
] as const;

/** How much it counts by how it stands there. */
const WHOLE_WORD = 1;
const WORD_START = 0.75;
const WITHIN_WORD = 0.5;

/** Words of a query that count; further ones are not looked at. */
export const MAX_QUERY_WORDS = 16;

const WORD = /[\p{L}\p{N}\p{M}]+/gu;

/** The words of a text in one spelling: compatibility forms composed, in lower case, without punctuation. */
export function wordsOf(text: string): string[] {
  return text.normalize("NFKC").toLowerCase().match(WORD) ?? [];
}

/** A category as it is compared: two that differ in case are one. */
export function categoryKey(category: string): string {
  return category.normalize("NFKC").toLowerCase();
}

/** The distinct words of a query, at most {@link MAX_QUERY_WORDS}. A query without words matches nothing. */
export function queryWords(query: string): string[] {
  return [...new Set(wordsOf(query))].slice(0, MAX_QUERY_WORDS);
}

/**
 * The words that free text is searched in: one line each for the id, the category and the description. A capability that
 * scores at all has a word of the query somewhere in this text, so that a store can look there first.
 */
export function searchText(capability: { id: string; category: string; description: string }): string {
  return FIELD_WEIGHTS.map(([field]) => wordsOf(capability[field]).join(" ")).join("\n");
}

/**
 * How well a capability answers a query: 0 (not at all) to 1 (each word of the query is a word of the id).
 *
 * Each word counts once, where it counts most, and the score is their mean: a capability that has more of the words, and
 * has them in its name, comes first. The same inputs give the same score on every machine.
 *
 * @param words of {@link queryWords}
 * @param text of {@link searchText}
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
 * Whether a score is enough. The contract's threshold has single precision, so the score is compared with the same: what
 * scores 0.6 passes a threshold of 0.6. A capability that has no word of the query never passes.
 */
export function passes(value: number, threshold: number): boolean {
  return value > 0 && Math.fround(value) >= Math.fround(threshold);
}

/** What a ranked list is ordered by. */
export interface Ranked {
  readonly score: number;
  readonly id: string;
  readonly agentId: string;
}

/** The order of a ranked list: best first, then by id and agent, so that no two places are equal. */
export function compareRanked(a: Ranked, b: Ranked): number {
  return b.score - a.score || order(a.id, b.id) || order(a.agentId, b.agentId);
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
