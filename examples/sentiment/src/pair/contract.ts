import type { JsonObject } from "@bufbuild/protobuf";
import type { createKey } from "@depute/client";
import { type TaskContract, TaskContractSchema } from "@depute/contracts/delegateos/v0/contract_pb";
import { newId, signObject } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { message } from "../documents.ts";

const HOUR_MS = 3_600_000;

/** Signs a contract whose result has to match a JSON Schema. */
export function signContract(
  key: ReturnType<typeof createKey>,
  title: string,
  schema: JsonObject,
  maxBudgetMicrocents: number,
): TaskContract {
  const now = Date.now();
  const document = {
    id: newId("ct"),
    version: "0.1" as const,
    issuer: key.principal.id,
    createdAt: new Date(now).toISOString(),
    task: { title, description: "", inputs: {}, outputSchema: true },
    verification: { method: "schema_match" as const, schema },
    constraints: {
      maxBudgetMicrocents,
      deadline: new Date(now + HOUR_MS).toISOString(),
      maxChainDepth: 2,
      requiredCapabilities: [],
    },
  };
  return message(TaskContractSchema, signObject(engine, "contract", document, key));
}
