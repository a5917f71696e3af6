import type { JudgeEndpoint } from "./config.ts";

/** Maximum length of an answer in language-model tokens, enough for a score and a brief explanation. */
export const MAX_ANSWER_TOKENS = 1024;

/** Maximum number of input tokens that an endpoint counts in addition to the prompt, for roles and delimiters. */
const MAX_FRAME_TOKENS = 64;

const MAX_BODY_BYTES = 256 * 1024;

export interface Question {
  model: string;
  temperature: number;
  prompt: string;
}

export interface Answer {
  /** The text of the model's answer; undefined if the response has no usable text. */
  text: string | undefined;
  /** The cost in microcents. If the endpoint reports no usage, this is the maximum cost. */
  cost: number;
  /** The reason why `text` is undefined. It never quotes the endpoint's response. */
  problem?: string;
}

/**
 * Sends one question to a model. Returns failures instead of throwing, because a failed question may have a cost.
 * Refuses redirects, because they may lead to hosts that the settings do not allow.
 */
export async function askModel(
  endpoint: JudgeEndpoint,
  question: Question,
  signal: AbortSignal,
): Promise<Answer> {
  const ceiling = ceilingOf(endpoint, question.prompt);
  try {
    const response = await fetch(endpoint.url, {
      method: "POST",
      redirect: "error",
      signal,
      headers: headersOf(endpoint),
      body: JSON.stringify(bodyOf(question)),
    });
    const body = await readBody(response);
    // An error status means that the endpoint refused the question. A refused question costs nothing.
    if (!response.ok) return { text: undefined, cost: 0, problem: `status ${response.status}` };
    const { text, input, output } = readAnswer(endpoint, JSON.parse(body));
    const cost = input === undefined || output === undefined ? ceiling : costOf(endpoint, input, output);
    return text === undefined ? { text, cost, problem: "an answer without text" } : { text, cost };
  } catch (error) {
    const problem = signal.aborted ? "no answer in time" : `no answer: ${(error as Error).name}`;
    return { text: undefined, cost: ceiling, problem };
  }
}

/**
 * Returns the maximum cost of one answer in microcents. Each token of the model has at least one byte, so the prompt
 * has at most as many input tokens as bytes. The API adds at most MAX_FRAME_TOKENS.
 */
export function ceilingOf(endpoint: JudgeEndpoint, prompt: string): number {
  return costOf(endpoint, Buffer.byteLength(prompt) + MAX_FRAME_TOKENS, MAX_ANSWER_TOKENS);
}

function headersOf({ style, key }: JudgeEndpoint): Record<string, string> {
  const json = { "content-type": "application/json" };
  if (style === "anthropic") {
    return { ...json, "anthropic-version": "2023-06-01", ...(key !== "" && { "x-api-key": key }) };
  }
  return { ...json, ...(key !== "" && { authorization: `Bearer ${key}` }) };
}

/** Members of the request body that both API styles accept. */
function bodyOf({ model, temperature, prompt }: Question) {
  return { model, temperature, max_tokens: MAX_ANSWER_TOKENS, messages: [{ role: "user", content: prompt }] };
}

interface ModelAnswer {
  text: string | undefined;
  input: number | undefined;
  output: number | undefined;
}

function readAnswer({ style }: JudgeEndpoint, body: unknown): ModelAnswer {
  const usage = at(body, "usage");
  if (style === "anthropic") {
    return {
      text: textOf(at(at(at(body, "content"), 0), "text")),
      input: countOf(at(usage, "input_tokens")),
      output: countOf(at(usage, "output_tokens")),
    };
  }
  return {
    text: textOf(at(at(at(at(body, "choices"), 0), "message"), "content")),
    input: countOf(at(usage, "prompt_tokens")),
    output: countOf(at(usage, "completion_tokens")),
  };
}

function at(value: unknown, member: string | number): unknown {
  if (typeof value !== "object" || value === null) return undefined;
  return Object.getOwnPropertyDescriptor(value, member)?.value;
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function countOf(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined;
}

function costOf({ inputPrice, outputPrice }: JudgeEndpoint, input: number, output: number): number {
  const exact = BigInt(input) * BigInt(inputPrice) + BigInt(output) * BigInt(outputPrice);
  const cost = (exact + 999_999n) / 1_000_000n;
  return cost > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(cost);
}

async function readBody(response: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of response.body ?? []) {
    size += part.length;
    if (size > MAX_BODY_BYTES) throw new RangeError("too large");
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}
