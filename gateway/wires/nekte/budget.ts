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
import { WireFault } from "../../src/fault.ts";

/** A result at one level. */
export interface Resolved {
  readonly level: DetailLevel;
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

/**
 * The result at the fullest level that is asked for and fits: full, compact, minimal. A level that the worker did not
 * give is the next fuller one that it gave.
 *
 * @throws WireFault BUDGET_EXCEEDED when none fits
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
  const { maxTokens } = budget ?? DEFAULT_RESULT_BUDGET;
  const from = DETAIL_LEVELS.indexOf(fullest.level);
  const fits = (level: DetailLevel, value: JsonValue) =>
    from <= DETAIL_LEVELS.indexOf(level) && estimateTokens(value) <= maxTokens;
  const { minimal, compact = given.full } = given;
  return {
    ...(minimal !== undefined && fits("minimal", minimal) ? { minimal } : {}),
    // A text is all that can stand under minimal, so what stands in for it stands under its own name.
    ...(fits("compact", compact) || (fullest.level === "minimal" && minimal === undefined)
      ? { compact }
      : {}),
    ...(fits("full", given.full) ? { full: given.full } : {}),
    tokens: fullest.tokens,
  };
}

/**
 * A preliminary result within a budget: at its own level, or at the one asked for where that is lower, as a result is whose
 * worker gave no other form. Undefined where it does not fit: there is no shorter form to step down to.
 *
 * @param given the level that the worker says the output has; another word counts as `compact`
 */
export function fittingPartial(
  out: JsonValue,
  given: string,
  budget: TokenBudget | undefined,
): Resolved | undefined {
  const { maxTokens, detailLevel } = budget ?? DEFAULT_RESULT_BUDGET;
  const tokens = estimateTokens(out);
  if (tokens > maxTokens) return undefined;
  const rank = Math.max(rankOf(given), rankOf(detailLevel));
  return { level: DETAIL_LEVELS[rank] ?? "minimal", out, tokens };
}

function rankOf(level: string): number {
  return DETAIL_LEVELS.indexOf(detailLevelOf(level));
}

/** The tokens that a result took: the worker's own count where it gives one, else the estimate. (NEKTE 2, `meta`) */
export function tokensUsed(usage: TaskUsage | undefined, estimated: number): number {
  const counted = usage?.tokensUsed ?? 0;
  return Math.min(counted > 0 ? counted : estimated, MAX_INT32);
}

const MAX_INT32 = 2 ** 31 - 1;

/** The refusal with its numbers as numbers. */
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

/** The JSON of a value of the tasks service; null when there is none. */
export function toPlain(value: Value | undefined): JsonValue {
  return value === undefined ? null : toJson(ValueSchema, value);
}
