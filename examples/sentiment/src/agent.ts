import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { DeputeClients } from "@depute/client";
import { CapabilityFullSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import { message } from "./documents.ts";

/** The worker's capability in NEKTE's form. */
export const SENTIMENT = {
  id: "sentiment",
  cat: "nlp",
  h: "",
  desc: "Sentiment of texts by the AFINN-165 lexicon. Input: texts. Output: counts by label and the mean score.",
  cost: { avg_ms: 50, avg_tokens: 60 },
  input: {
    type: "object",
    properties: {
      texts: { type: "array", items: { type: "string", maxLength: 4000 }, minItems: 1, maxItems: 2000 },
    },
    required: ["texts"],
  },
  output: {
    type: "object",
    properties: {
      count: { type: "integer", minimum: 0 },
      positive: { type: "integer", minimum: 0 },
      negative: { type: "integer", minimum: 0 },
      neutral: { type: "integer", minimum: 0 },
      mean_score: { type: "number", minimum: -5, maximum: 5 },
    },
    required: ["count", "positive", "negative", "neutral", "mean_score"],
    additionalProperties: false,
  },
  examples: [
    {
      in: { texts: ["This is wonderful."] },
      out: { count: 1, positive: 1, negative: 0, neutral: 0, mean_score: 4 },
    },
  ],
} as const;

/** Registers the worker under an agent id and a principal, and publishes its capability. */
export async function introduce(clients: DeputeClients, agentId: string, principal: string): Promise<void> {
  await clients.agents.registerAgent({
    requestId: crypto.randomUUID(),
    agent: {
      id: agentId,
      displayName: "Sentiment worker",
      description: "Scores texts by a published lexicon.",
      version: "1.0.0",
      principal,
      leaseDuration: durationFromMs(30_000),
    },
  });
  await clients.agents.publishCapabilities({
    requestId: crypto.randomUUID(),
    agentId,
    capabilities: [message(CapabilityFullSchema, SENTIMENT)],
  });
}
