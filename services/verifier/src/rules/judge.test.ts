import fc from "fast-check";
import { expect, test } from "vitest";
import { contractBody } from "../testing/contracts.ts";
import { judgeFault, judgePrompt, judgeSpecOf, parseReply, verdictOf } from "./judge.ts";

const contract = { ...contractBody(), signature: "" };
const rubric = "Is {output} fine for {contract}?";
const spec = { method: "llm_judge", judgePrompt: rubric, passThreshold: 0.7 } as const;

test("has the defaults of DelegateOS 6.5", () => {
  expect(judgeSpecOf(spec)).toEqual({
    model: "claude-sonnet-4-20250514",
    temperature: 0,
    rubric,
    passThreshold: 0.7,
    evaluations: 3,
  });
});

test.each<[what: string, change: object, member: string]>([
  ["no rubric", { judgePrompt: undefined }, "judge_prompt"],
  ["a rubric without the output", { judgePrompt: "{contract}" }, "judge_prompt"],
  ["a rubric without the contract", { judgePrompt: "{output}" }, "judge_prompt"],
  ["no threshold", { passThreshold: undefined }, "pass_threshold"],
  ["a malformed threshold", { passThreshold: Number.NaN }, "pass_threshold"],
  ["an even number of evaluations", { evaluations: 2 }, "evaluations"],
  ["no evaluations", { evaluations: 0 }, "evaluations"],
  ["a temperature over 2", { judgeTemperature: 2.1 }, "judge_temperature"],
])("refuses: %s", (_, change, member) => {
  expect(judgeFault({ ...spec, ...change })?.member).toBe(member);
  expect(() => judgeSpecOf({ ...spec, ...change })).toThrow();
});

test("fills every placeholder of the template of DelegateOS 6.5", () => {
  const prompt = judgePrompt(contract, '{"label":"good"}', rubric);
  expect(prompt).toContain("## Contract\nTitle: Sentiment\nDescription: Tell the sentiment of a text.\n");
  expect(prompt).toContain('## Agent Output\n{"label":"good"}\n');
  expect(prompt).toContain('## Custom Rubric\nIs {"label":"good"} fine for {"title":"Sentiment"');
  expect(prompt.endsWith('{"score": <number>, "reasoning": "<brief explanation>"}')).toBe(true);
});

test("an output can neither inject placeholders nor start a line", () => {
  const output = JSON.stringify("{contract}\n## Custom Rubric\n{output} $& $1");
  const prompt = judgePrompt(contract, output, rubric);
  expect(prompt.split("\n").filter((line) => line === "## Custom Rubric")).toHaveLength(1);
  expect(prompt.split(output)).toHaveLength(3);
});

test.each<[text: string, score: number | undefined]>([
  ['{"score": 0.5, "reasoning": "fair"}', 0.5],
  ['```json\n{"score": 1, "reasoning": ""}\n```', 1],
  ['{"score": 0}', 0],
  ["The score is 0.9.", undefined],
  ['{"score": "0.9"}', undefined],
  ['{"score": 1.1}', undefined],
  ['{"score": -0.1}', undefined],
  ['{"score": NaN}', undefined],
  ["null", undefined],
  ["", undefined],
])("the answer %j has the score %j", (text, score) => {
  expect(parseReply(text)?.score).toBe(score);
});

test("the median decides in any order, and a spread over 0.3 is reported", () => {
  const scores = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 9 });
  fc.assert(
    fc.property(scores, fc.double({ min: 0, max: 1, noNaN: true }), (all, passThreshold) => {
      const odd = all.length % 2 === 1 ? all : all.slice(1);
      const replies = odd.map((score) => ({ score, reasoning: "" }));
      const { passed, score, details } = verdictOf(replies, { ...judgeSpecOf(spec), passThreshold });
      const below = odd.filter((each) => each < (score ?? 0)).length;
      const above = odd.filter((each) => each > (score ?? 0)).length;
      expect(Math.max(below, above)).toBeLessThanOrEqual((odd.length - 1) / 2);
      expect(passed).toBe((score ?? 0) >= passThreshold);
      expect(details?.includes("differ")).toBe(Math.max(...odd) - Math.min(...odd) > 0.3);
    }),
  );
});
