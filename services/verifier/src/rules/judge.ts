import { CheckNotRun, type CheckResult, shorten } from "./check-result.ts";
import type { TaskContract, VerificationSpec } from "./documents.ts";

/** Defaults of DelegateOS 6.5. */
export const DEFAULT_JUDGE_MODEL = "claude-sonnet-4-20250514";
export const DEFAULT_JUDGE_TEMPERATURE = 0;
export const DEFAULT_EVALUATIONS = 3;

/** Scores further apart than this are told (DelegateOS 6.5). */
export const SPREAD_WARNING = 0.3;

/** A verification by llm_judge, complete. */
export interface JudgeSpec {
  model: string;
  temperature: number;
  rubric: string;
  passThreshold: number;
  evaluations: number;
}

/** What is wrong with the members of an llm_judge (DelegateOS 6.5), and in which. */
export function judgeFault(spec: VerificationSpec): { member: string; problem: string } | undefined {
  const { judgePrompt, passThreshold, evaluations = DEFAULT_EVALUATIONS, judgeTemperature = 0 } = spec;
  if (judgePrompt === undefined) return { member: "judge_prompt", problem: "llm_judge needs it" };
  for (const place of ["{output}", "{contract}"]) {
    if (!judgePrompt.includes(place))
      return { member: "judge_prompt", problem: `has to have the place ${place}` };
  }
  if (passThreshold === undefined || !(passThreshold >= 0 && passThreshold <= 1)) {
    return { member: "pass_threshold", problem: "llm_judge needs it, 0 to 1" };
  }
  // The median of an even number is no score that anybody gave.
  if (!Number.isInteger(evaluations) || evaluations < 1 || evaluations > 99 || evaluations % 2 === 0) {
    return { member: "evaluations", problem: "an odd number from 1 to 99 is needed" };
  }
  if (!(judgeTemperature >= 0 && judgeTemperature <= 2)) {
    return { member: "judge_temperature", problem: "0 to 2 is needed" };
  }
  return undefined;
}

/** @throws CheckNotRun for one that could not have been created */
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
 * The prompt of DelegateOS 6.5. Depute's choice: the text has the rubric in the template and places in the rubric, so
 * both are filled; each text is put in once and not looked at again, so an output cannot bring places of its own.
 *
 * @param output JSON of the output: a line break in a text is then `\n`, and no output forges a heading
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

/** A model's answer; undefined when it is not what was asked for. A code fence around it is passed over. */
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

/** How far the scores are apart. */
export function spreadOf(replies: readonly JudgeReply[]): number {
  const scores = replies.map(({ score }) => score);
  return Math.max(...scores) - Math.min(...scores);
}

/** The median's verdict (DelegateOS 6.5). Replies are as many as were asked for, which is odd. */
export function verdictOf(replies: readonly JudgeReply[], { passThreshold }: JudgeSpec): CheckResult {
  const median = replies.toSorted((a, b) => a.score - b.score)[(replies.length - 1) / 2];
  if (median === undefined) throw new CheckNotRun("nobody judged");
  const spread = spreadOf(replies);
  const warning = spread > SPREAD_WARNING ? `the judges differ by ${spread.toFixed(2)}; ` : "";
  return {
    passed: median.score >= passThreshold,
    score: median.score,
    details: shorten(`${warning}${median.reasoning || "no reason given"}`),
  };
}
