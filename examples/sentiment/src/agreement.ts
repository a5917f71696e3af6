import { type TaskContract, TaskContractSchema } from "@depute/contracts/delegateos/v0/contract_pb";
import { type CryptoEngine, type Keypair, newId, signObject } from "@depute/dct";
import { SENTIMENT } from "./agent.ts";
import { message } from "./documents.ts";

/** Creates the contract between delegator and worker: the required output, the checks and the maximum cost. */
export function agree(engine: CryptoEngine, delegator: Keypair, count: number): TaskContract {
  const exactly = {
    ...SENTIMENT.output,
    properties: { ...SENTIMENT.output.properties, count: { const: count } },
  };
  const signed = signObject(
    engine,
    "contract",
    {
      id: newId("ct"),
      version: "0.1",
      issuer: delegator.principal.id,
      createdAt: new Date().toISOString(),
      task: {
        title: `Sentiment of ${count} texts`,
        description: "Score every text by the lexicon and add up the labels.",
        inputs: { count },
        outputSchema: SENTIMENT.output,
      },
      verification: {
        method: "composite",
        mode: "all_pass",
        steps: [
          { method: "schema_match", schema: exactly },
          {
            method: "deterministic_check",
            checkName: "field_exists",
            checkParams: { fields: ["positive", "negative", "neutral", "mean_score"] },
          },
        ],
      },
      constraints: {
        maxBudgetMicrocents: 1_000_000,
        deadline: new Date(Date.now() + 600_000).toISOString(),
        maxChainDepth: 2,
        requiredCapabilities: ["llm:classify"],
      },
    },
    delegator,
  );
  return message(TaskContractSchema, signed);
}
