/** An agent that scores the sentiment of texts, until it is stopped. examples/README.md lists its settings. */
import { setTimeout as pause } from "node:timers/promises";
import { connect, type WorkContext } from "@depute/client";
import { nativeEngine as engine } from "@depute/dct/native";
import { attestCompletion } from "../attest.ts";
import { keyOf } from "./key-file.ts";

const { DEPUTE_URL: url = "http://127.0.0.1:8080", DEPUTE_AGENT: agentId = "sentiment" } = process.env;
const { DEPUTE_KEY: file = "worker.key", DEPUTE_PAUSE_MS: pauseMs = "0" } = process.env;
const BATCH = 50;
const SCORES = new Map(
  Object.entries({ wonderful: 4, excellent: 3, useful: 2, bad: -3, broken: -1, terrible: -3 }),
);

const key = keyOf(file);
const depute = connect(url, { key });
await depute.register({
  id: agentId,
  principal: key.principal.id,
  displayName: "Sentiment",
  description: "Scores the sentiment of texts.",
  version: "1.0.0",
  capabilities: [
    {
      id: "sentiment",
      category: "nlp",
      description: "Scores texts.",
      input: {
        type: "object",
        properties: { texts: { type: "array", items: { type: "string" } } },
        required: ["texts"],
      },
      output: {
        type: "object",
        required: ["count", "positive", "negative"],
        additionalProperties: { type: "integer" },
      },
    },
  ],
});
const worker = depute.work({
  agentId,
  capacity: 4,
  async work(input, context) {
    const began = Date.now();
    const output = await score((input as { texts: string[] }).texts, context).catch((error) => {
      console.log("stopped", context.task.id);
      throw error;
    });
    const result = { output, costMicrocents: 100 * output.count };
    const attestation = attestCompletion(engine, key, context.task, result, Date.now() - began);
    await depute.services.attestations.recordAttestation({ attestation });
    console.log("completed", context.task.id);
    return { ...result, attestationId: attestation.id };
  },
});
console.log("ready");
process.once("SIGTERM", async () => {
  await worker.stop();
  depute.close();
});

/** Scores the texts in batches. The checkpoint is the output so far. */
async function score(texts: readonly string[], { saved, signal, checkpoint, progress }: WorkContext) {
  const sums = { count: 0, positive: 0, negative: 0, ...(saved as object | undefined) };
  while (sums.count < texts.length) {
    for (const text of texts.slice(sums.count, sums.count + BATCH)) {
      const words = text.toLowerCase().match(/[a-z]+/g) ?? [];
      const total = words.reduce((sum, word) => sum + (SCORES.get(word) ?? 0), 0);
      sums.count += 1;
      if (total > 0) sums.positive += 1;
      if (total < 0) sums.negative += 1;
    }
    await checkpoint(sums);
    await progress(sums.count, texts.length);
    await pause(Number(pauseMs), undefined, { signal });
  }
  return sums;
}
