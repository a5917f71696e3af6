import type { JsonValue } from "@bufbuild/protobuf";
import { type WorkContext, WorkFailure, type WorkResult } from "@depute/client";
import { type Scored, type Summary, score, summarize } from "./sentiment.ts";

const BATCH = 50;
/** The price of one text in microcents: a hundred texts cost a hundredth of a cent. */
const MICROCENTS_A_TEXT = 100;

/** Scores the texts of the input in batches, and reports progress after each batch. */
export async function analyse(
  input: JsonValue,
  context: WorkContext,
  pauseMs = 0,
): Promise<WorkResult & { output: Summary & Record<string, JsonValue> }> {
  const texts = textsOf(input);
  const scored: Scored[] = [];
  for (let from = 0; from < texts.length; from += BATCH) {
    scored.push(...texts.slice(from, from + BATCH).map(score));
    await context.progress(scored.length, texts.length, `batch ${from / BATCH + 1}`);
    if (from === BATCH * 4) await context.partial({ preliminary_score: summarize(scored).mean_score });
    if (pauseMs > 0) await pause(pauseMs, context.signal);
  }
  const summary = summarize(scored);
  const percent = Math.round((summary.positive / Math.max(1, summary.count)) * 100);
  return {
    output: { ...summary },
    compact: { count: summary.count, mean_score: summary.mean_score },
    minimal: `${percent}% positive`,
    costMicrocents: BigInt(summary.count * MICROCENTS_A_TEXT),
  };
}

function textsOf(input: JsonValue): string[] {
  const texts =
    typeof input === "object" && input !== null && !Array.isArray(input) ? input.texts : undefined;
  if (Array.isArray(texts) && texts.every((text) => typeof text === "string")) return texts;
  throw new WorkFailure("INVALID_INPUT", "the input holds no list of texts", false);
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
