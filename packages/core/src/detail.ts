import type { JsonValue } from "@bufbuild/protobuf";
import { DeputeError, ErrorReason } from "./errors.ts";

/** Levels of detail, the fullest first: the order in which a result steps down. (NEKTE 2, 3) */
export const DETAIL_LEVELS = ["full", "compact", "minimal"] as const;
export type DetailLevel = (typeof DETAIL_LEVELS)[number];

/** The budget of a result where none is named. (NEKTE library) */
export const DEFAULT_RESULT_BUDGET = { maxTokens: 500, detailLevel: "compact" } as const;

/** The tokens of a budget that names none, by its level of detail. (NEKTE library) */
export const DEFAULT_TOKENS: Readonly<Record<DetailLevel, number>> = {
  full: 4096,
  compact: 500,
  minimal: 50,
};

/** The level that a word names; any other word counts as `compact`. */
export function detailLevelOf(word: string): DetailLevel {
  return DETAIL_LEVELS.find((known) => known === word) ?? DEFAULT_RESULT_BUDGET.detailLevel;
}

/** A result at the levels that the worker gave. */
export interface GivenLevels {
  readonly full: JsonValue;
  readonly compact: JsonValue | undefined;
  readonly minimal: string | undefined;
}

/** A result at one level. */
export interface ResolvedDetail {
  readonly level: DetailLevel;
  readonly output: JsonValue;
  /** Its estimated size. */
  readonly tokens: number;
}

/** Tokens of a value, estimated as NEKTE's library does: a quarter of the characters of its JSON, or of a text itself. */
export function estimateTokens(value: JsonValue): number {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return Math.ceil(text.length / 4);
}

/**
 * The result at the fullest level that is asked for and fits: full, compact, minimal. A level that the worker did not give
 * is the next fuller one that it gave.
 *
 * @param budget `maxTokens` in tokens; `detailLevel` one of the levels, any other word counts as `compact`
 * @throws DeputeError BUDGET_EXCEEDED when even the lowest level does not fit. Depute's choice: the text wants budgets
 * respected, where its library sends the lowest level nevertheless
 */
export function resolveDetail(
  given: GivenLevels,
  budget: { readonly maxTokens: number; readonly detailLevel: string } = DEFAULT_RESULT_BUDGET,
): ResolvedDetail {
  const asked = detailLevelOf(budget.detailLevel);
  let needed = Number.POSITIVE_INFINITY;
  for (const level of DETAIL_LEVELS.slice(DETAIL_LEVELS.indexOf(asked))) {
    const output = at(given, level);
    const tokens = estimateTokens(output);
    if (tokens <= budget.maxTokens) return { level, output, tokens };
    needed = Math.min(needed, tokens);
  }
  throw new DeputeError(
    ErrorReason.BUDGET_EXCEEDED,
    `the shortest form of the result needs ${needed} tokens, and the budget allows ${budget.maxTokens}: ask again with a larger one`,
    { metadata: { needed: String(needed), allowed: String(budget.maxTokens), unit: "tokens" } },
  );
}

function at({ full, compact = full, minimal }: GivenLevels, level: DetailLevel): JsonValue {
  if (level === "full") return full;
  return level === "minimal" ? (minimal ?? compact) : compact;
}
