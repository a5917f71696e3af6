import { type JsonValue, toJson } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import type { TaskOutput } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { TokenBudget } from "@depute/contracts/nekte/v1/nekte_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import { WireFault } from "../../src/fault.ts";

/** Levels of detail, the fullest first: the order in which a result steps down. */
export const LEVELS = ["full", "compact", "minimal"] as const;
export type Level = (typeof LEVELS)[number];

/** What a caller allows who names no budget (NEKTE library). */
const DEFAULT_TOKENS = 500;
const DEFAULT_LEVEL: Level = "compact";

/** A result at one level. */
export interface Resolved {
  readonly level: Level;
  readonly out: JsonValue;
  readonly tokens: number;
}

/** A result at every level that fits. */
export interface LevelledOutput {
  readonly minimal?: string;
  readonly compact?: JsonValue;
  readonly full?: JsonValue;
  /** Tokens of the fullest level that is there. */
  readonly tokens: number;
}

/** Tokens of a value, estimated as NEKTE's library does: a quarter of the characters of its JSON, or of a text itself. */
export function estimateTokens(value: JsonValue): number {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return Math.ceil(text.length / 4);
}

/**
 * The result at the fullest level that is asked for and fits: full, compact, minimal. A level that the worker did not
 * give is the next fuller one that it gave.
 *
 * @throws WireFault BUDGET_EXCEEDED when none fits (Depute's choice: the text wants budgets respected)
 */
export function resolveLevel(output: TaskOutput | undefined, budget: TokenBudget | undefined): Resolved {
  const given = readLevels(output);
  const { level: asked, maxTokens } = allowance(budget);
  let needed = Number.POSITIVE_INFINITY;
  for (const level of LEVELS.slice(LEVELS.indexOf(asked))) {
    const out = given[level] ?? given.compact;
    const tokens = estimateTokens(out);
    if (tokens <= maxTokens) return { level, out, tokens };
    needed = Math.min(needed, tokens);
  }
  throw budgetExceeded(needed, maxTokens);
}

/**
 * The result at all levels up to the one asked for that fit.
 *
 * @throws WireFault BUDGET_EXCEEDED as resolveLevel
 */
export function fittingLevels(
  output: TaskOutput | undefined,
  budget: TokenBudget | undefined,
): LevelledOutput {
  const fullest = resolveLevel(output, budget);
  const given = readLevels(output);
  const { maxTokens } = allowance(budget);
  const from = LEVELS.indexOf(fullest.level);
  const fits = (level: Level, value: JsonValue) =>
    from <= LEVELS.indexOf(level) && estimateTokens(value) <= maxTokens;
  const { minimal } = given;
  return {
    ...(minimal !== undefined && fits("minimal", minimal) ? { minimal } : {}),
    // A text is all that can stand under minimal, so what stands in for it stands under its own name.
    ...(fits("compact", given.compact) || (fullest.level === "minimal" && minimal === undefined)
      ? { compact: given.compact }
      : {}),
    ...(fits("full", given.full) ? { full: given.full } : {}),
    tokens: fullest.tokens,
  };
}

function budgetExceeded(needed: number, allowed: number): WireFault {
  const detail = `the shortest form of the result needs ${needed} tokens, and ${allowed} are allowed`;
  const metadata = { needed: String(needed), allowed: String(allowed), unit: "tokens" };
  const refusal = new DeputeError(ErrorReason.BUDGET_EXCEEDED, detail, { metadata });
  return new WireFault(refusal, { reason: "BUDGET_EXCEEDED", detail, needed, allowed });
}

function allowance(budget: TokenBudget | undefined): { level: Level; maxTokens: number } {
  const level = LEVELS.find((known) => known === budget?.detailLevel) ?? DEFAULT_LEVEL;
  return { level, maxTokens: budget?.maxTokens ?? DEFAULT_TOKENS };
}

interface Levels {
  readonly full: JsonValue;
  readonly compact: JsonValue;
  readonly minimal: string | undefined;
}

function readLevels(output: TaskOutput | undefined): Levels {
  const full = toPlain(output?.full);
  const compact = output?.compact === undefined ? full : toPlain(output.compact);
  return { full, compact, minimal: output?.minimal };
}

/** The JSON of a value of the tasks service; null when there is none. */
export function toPlain(value: Value | undefined): JsonValue {
  return value === undefined ? null : toJson(ValueSchema, value);
}
