import { type JsonValue, toJson } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import type { TaskOutput, TaskUsage } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { TokenBudget } from "@depute/contracts/nekte/v1/nekte_pb";
import {
  DEFAULT_RESULT_BUDGET,
  DETAIL_LEVELS,
  DeputeError,
  type DetailLevel,
  detailLevelOf,
  ErrorReason,
  estimateTokens,
  type GivenLevels,
  resolveDetail,
} from "@depute/core";
import { WireFault } from "../../edge/fault.ts";

/** A result at one level of detail. */
export interface Resolved {
  readonly level: DetailLevel;
  readonly out: JsonValue;
  readonly tokens: number;
}

/** The forms of a result that fit the token budget, by level of detail. */
export interface LevelledOutput {
  readonly minimal?: string;
  readonly compact?: JsonValue;
  readonly full?: JsonValue;
  /** Number of language-model tokens of the fullest form in this object. */
  readonly tokens: number;
}

/**
 * Returns the result at the fullest level that fits, but not above the requested level. The levels are full, compact
 * and minimal. If the worker provided no form for a level, the next fuller form is used.
 *
 * @throws WireFault BUDGET_EXCEEDED if no level fits
 */
export function resolveLevel(output: TaskOutput | undefined, budget: TokenBudget | undefined): Resolved {
  try {
    const { level, output: out, tokens } = resolveDetail(readLevels(output), budget);
    return { level, out, tokens };
  } catch (thrown) {
    if (thrown instanceof DeputeError && thrown.reason === ErrorReason.BUDGET_EXCEEDED)
      throw withData(thrown);
    throw thrown;
  }
}

/**
 * Returns the result at every level that fits, but not above the requested level.
 *
 * @throws WireFault BUDGET_EXCEEDED if no level fits
 */
export function fittingLevels(
  output: TaskOutput | undefined,
  budget: TokenBudget | undefined,
): LevelledOutput {
  const fullest = resolveLevel(output, budget);
  const levels = readLevels(output);
  const { maxTokens } = budget ?? DEFAULT_RESULT_BUDGET;
  const from = DETAIL_LEVELS.indexOf(fullest.level);
  const fits = (level: DetailLevel, value: JsonValue) =>
    from <= DETAIL_LEVELS.indexOf(level) && estimateTokens(value) <= maxTokens;
  const { minimal, compact = levels.full } = levels;
  return {
    ...(minimal !== undefined && fits("minimal", minimal) ? { minimal } : {}),
    // The minimal form must be a text. If the worker provided no minimal form, the member `compact` contains the
    // compact form instead.
    ...(fits("compact", compact) || (fullest.level === "minimal" && minimal === undefined)
      ? { compact }
      : {}),
    ...(fits("full", levels.full) ? { full: levels.full } : {}),
    tokens: fullest.tokens,
  };
}

/**
 * Returns a preliminary result if it fits the token budget, otherwise undefined. The worker sends a preliminary
 * result in only one form. The level of the returned result is the lower of two: the level that the worker states,
 * and the requested level.
 *
 * @param statedLevel the level that the worker states; an unknown word counts as `compact`
 */
export function fittingPartial(
  out: JsonValue,
  statedLevel: string,
  budget: TokenBudget | undefined,
): Resolved | undefined {
  const { maxTokens, detailLevel } = budget ?? DEFAULT_RESULT_BUDGET;
  const tokens = estimateTokens(out);
  if (tokens > maxTokens) return undefined;
  const rank = Math.max(rankOf(statedLevel), rankOf(detailLevel));
  return { level: DETAIL_LEVELS[rank] ?? "minimal", out, tokens };
}

function rankOf(level: string): number {
  return DETAIL_LEVELS.indexOf(detailLevelOf(level));
}

/**
 * Returns the number of language-model tokens of a result: the worker's count or, if the worker reported no count, the
 * estimate. (NEKTE 2, `meta`)
 */
export function tokensUsed(usage: TaskUsage | undefined, estimated: number): number {
  const counted = Number(usage?.tokensUsed ?? 0n);
  return Math.min(counted > 0 ? counted : estimated, MAX_INT32);
}

const MAX_INT32 = 2 ** 31 - 1;

/** Converts a BUDGET_EXCEEDED error to NEKTE's form, in which `needed` and `allowed` are numbers. */
function withData(refusal: DeputeError): WireFault {
  const { needed, allowed } = refusal.metadata;
  return new WireFault(refusal, {
    reason: "BUDGET_EXCEEDED",
    detail: refusal.message,
    needed: Number(needed),
    allowed: Number(allowed),
  });
}

function readLevels(output: TaskOutput | undefined): GivenLevels {
  const { compact, minimal } = output ?? {};
  return { full: toPlain(output?.full), compact: compact && toPlain(compact), minimal };
}

/** Converts a value of the tasks service to JSON; null if there is no value. */
export function toPlain(value: Value | undefined): JsonValue {
  return value === undefined ? null : toJson(ValueSchema, value);
}
