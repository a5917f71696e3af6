import { CheckNotRun, type CheckResult, shorten } from "./check-result.ts";
import type { TaskContract, VerificationSpec } from "./documents.ts";

/** The defaults for the settings of an llm_judge (DelegateOS 6.5). */
export const DEFAULT_JUDGE_MODEL = "claude-sonnet-4-20250514";
export const DEFAULT_JUDGE_TEMPERATURE = 0;
export const DEFAULT_EVALUATIONS = 3;

/** If the highest and the lowest score differ by more than this, the result reports the difference (DelegateOS 6.5). */
export const SPREAD_WARNING = 0.3;

/** The settings of an llm_judge. Defaults are filled in. */
export interface JudgeSpec {
  model: string;
  temperature: number;
  rubric: string;
  passThreshold: number;
  evaluations: number;
}

/** Returns the first fault in the members of an llm_judge (DelegateOS 6.5); undefined without a fault. */
export function judgeFault(spec: VerificationSpec): { member: string; problem: string } | undefined {
  const { judgePrompt, passThreshold, evaluations = DEFAULT_EVALUATIONS, judgeTemperature = 0 } = spec;
  if (judgePrompt === undefined) return { member: "judge_prompt", problem: "is required for llm_judge" };
  for (const place of ["{output}", "{contract}"]) {
    if (!judgePrompt.includes(place))
      return { member: "judge_prompt", problem: `must contain the placeholder ${place}` };
  }
  if (passThreshold === undefined || !(passThreshold >= 0 && passThreshold <= 1)) {
    return { member: "pass_threshold", problem: "must be 0 to 1 for llm_judge" };
  }
  // Requires an odd number, because the median of an even number of scores may differ from every score.
  if (!Number.isInteger(evaluations) || evaluations < 1 || evaluations > 99 || evaluations % 2 === 0) {
    return { member: "evaluations", problem: "must be an odd number from 1 to 99" };
  }
  if (!(judgeTemperature >= 0 && judgeTemperature <= 2)) {
    return { member: "judge_temperature", problem: "must be 0 to 2" };
  }
  return undefined;
}

/**
 * Returns the settings of an llm_judge.
 *
 * @throws CheckNotRun if the settings are invalid
 */
export function judgeSpecOf(spec: VerificationSpec): JudgeSpec {
  const fault = judgeFault(spec);
  if (fault !== undefined) throw new CheckNotRun(`llm_judge: ${fault.member} ${fault.problem}`);
  return {
    model: spec.judgeModel ?? DEFAULT_JUDGE_MODEL,
    temperature: spec.judgeTemperature ?? DEFAULT_JUDGE_TEMPERATURE,
    rubric: spec.judgePrompt ?? "",
    passThreshold: spec.passThreshold ?? 1,
    evaluations: spec.evaluations ?? DEFAULT_EVALUATIONS,
  };
}

/**
 * Returns the prompt of DelegateOS 6.5. The prompt contains the rubric, in which the placeholders `{output}` and
 * `{contract}` are replaced. The function does not scan the inserted texts for placeholders, so an output cannot inject
 * them.
 *
 * @param output JSON of the output; its line breaks are escaped, so no output can forge a heading
 */
export function judgePrompt(contract: TaskContract, output: string, rubric: string): string {
  const { title, description, outputSchema } = contract.task;
  const places: Record<string, string> = {
    "{output}": output,
    "{contract}": JSON.stringify(contract.task),
  };
  const filled = rubric.replace(/\{output\}|\{contract\}/g, (place) => places[place] ?? place);
  return [
    "You are evaluating whether an AI agent's output satisfies a task contract.",
    "",
    "## Contract",
    `Title: ${title}`,
    `Description: ${description}`,
    `Expected output schema: ${JSON.stringify(outputSchema)}`,
    "",
    "## Agent Output",
    output,
    "",
    "## Custom Rubric",
    filled,
    "",
    "Rate the output quality from 0.0 to 1.0. Respond with ONLY a JSON object:",
    '{"score": <number>, "reasoning": "<brief explanation>"}',
  ].join("\n");
}

export interface JudgeReply {
  score: number;
  reasoning: string;
}

/** Parses a model's answer, which may be in a code fence. Returns undefined if the answer has no valid score. */
export function parseReply(text: string): JudgeReply | undefined {
  const bare = /^\s*```(?:json)?\s*([\s\S]*?)\s*```\s*$/.exec(text)?.[1] ?? text;
  let value: unknown;
  try {
    value = JSON.parse(bare);
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null) return undefined;
  const { score, reasoning } = value as Record<string, unknown>;
  if (typeof score !== "number" || !(score >= 0 && score <= 1)) return undefined;
  return { score, reasoning: typeof reasoning === "string" ? shorten(reasoning, 500) : "" };
}

/** Returns the difference between the highest and the lowest score. */
export function spreadOf(replies: readonly JudgeReply[]): number {
  const scores = replies.map(({ score }) => score);
  return Math.max(...scores) - Math.min(...scores);
}

/**
 * Returns the result of an llm_judge (DelegateOS 6.5): that of the reply with the median score.
 *
 * @param replies an odd number of replies
 */
export function verdictOf(replies: readonly JudgeReply[], { passThreshold }: JudgeSpec): CheckResult {
  const median = replies.toSorted((a, b) => a.score - b.score)[(replies.length - 1) / 2];
  if (median === undefined) throw new CheckNotRun("there are no scores");
  const spread = spreadOf(replies);
  const warning = spread > SPREAD_WARNING ? `the scores differ by ${spread.toFixed(2)}; ` : "";
  return {
    passed: median.score >= passThreshold,
    score: median.score,
    details: shorten(`${warning}${median.reasoning || "no reason given"}`),
  };
}
