import type { JsonValue } from "@bufbuild/protobuf";
import { DeputeError, ErrorReason } from "./errors.ts";

/**
 * Levels of detail, the fullest first. If a result at one level exceeds its budget of language-model tokens, the next
 * level is sent. (NEKTE 2, 3)
 */
export const DETAIL_LEVELS = ["full", "compact", "minimal"] as const;
export type DetailLevel = (typeof DETAIL_LEVELS)[number];

/** The budget of a result, in language-model tokens, when the request states none. (NEKTE library) */
export const DEFAULT_RESULT_BUDGET = { maxTokens: 500, detailLevel: "compact" } as const;

/**
 * The default maximum size of a result, in language-model tokens, for each level of detail. The default applies to a
 * budget that states only a level. (NEKTE library)
 */
export const DEFAULT_TOKENS: Readonly<Record<DetailLevel, number>> = {
  full: 4096,
  compact: 500,
  minimal: 50,
};

/** Converts a word to a level of detail; any unknown word counts as `compact`. */
export function detailLevelOf(word: string): DetailLevel {
  return DETAIL_LEVELS.find((known) => known === word) ?? DEFAULT_RESULT_BUDGET.detailLevel;
}

/** A result in the levels of detail that the worker delivered. */
export interface GivenLevels {
  readonly full: JsonValue;
  readonly compact: JsonValue | undefined;
  readonly minimal: string | undefined;
}

/** A result at one level of detail. */
export interface ResolvedDetail {
  readonly level: DetailLevel;
  readonly output: JsonValue;
  /** The estimated size of the result at this level, in language-model tokens. */
  readonly tokens: number;
}

/**
 * Estimates the language-model tokens of a value as NEKTE's library does: a quarter of the number of characters in its
 * JSON or, for a string, in the string.
 */
export function estimateTokens(value: JsonValue): number {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return Math.ceil(text.length / 4);
}

/**
 * Returns the result at the fullest level that fits the budget. The search starts at the requested level, and its order
 * is full, compact, minimal. The next fuller level replaces a level that the worker did not deliver.
 *
 * @param budget `maxTokens` in language-model tokens; an unknown `detailLevel` counts as `compact`
 * @throws DeputeError BUDGET_EXCEEDED when not even the lowest level fits. This is Depute's choice: NEKTE's
 * specification requires the budget, but NEKTE's library sends the lowest level nevertheless
 */
export function resolveDetail(
  levels: GivenLevels,
  budget: { readonly maxTokens: number; readonly detailLevel: string } = DEFAULT_RESULT_BUDGET,
): ResolvedDetail {
  const requestedLevel = detailLevelOf(budget.detailLevel);
  let needed = Number.POSITIVE_INFINITY;
  for (const level of DETAIL_LEVELS.slice(DETAIL_LEVELS.indexOf(requestedLevel))) {
    const output = at(levels, level);
    const tokens = estimateTokens(output);
    if (tokens <= budget.maxTokens) return { level, output, tokens };
    needed = Math.min(needed, tokens);
  }
  throw new DeputeError(
    ErrorReason.BUDGET_EXCEEDED,
    `the shortest form of the result needs ${needed} tokens, and the budget allows ${budget.maxTokens}: repeat the call with a larger budget`,
    { metadata: { needed: String(needed), allowed: String(budget.maxTokens), unit: "tokens" } },
  );
}

function at({ full, compact = full, minimal }: GivenLevels, level: DetailLevel): JsonValue {
  if (level === "full") return full;
  return level === "minimal" ? (minimal ?? compact) : compact;
}
