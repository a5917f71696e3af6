import type { WorkResult } from "@depute/client";
import { type Attestation, AttestationSchema } from "@depute/contracts/delegateos/v0/attestation_pb";
import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import { type CryptoEngine, type Keypair, newId, signObject } from "@depute/dct";
import { message } from "./documents.ts";

/** Signs an attestation of the task's output and cost in the worker's name. (DelegateOS 7) */
export function attestCompletion(
  engine: CryptoEngine,
  keypair: Keypair,
  task: Task,
  result: WorkResult,
  durationMs: number,
): Attestation {
  const body = {
    id: newId("att"),
    version: "0.1" as const,
    contractId: task.contractId,
    delegationId: task.delegationId,
    principal: keypair.principal.id,
    createdAt: new Date().toISOString(),
    type: "completion" as const,
    result: {
      success: true,
      output: result.output,
      costMicrocents: Number(result.costMicrocents ?? 0n),
      durationMs,
    },
    childAttestations: [],
  };
  return message(AttestationSchema, signObject(engine, "attestation", body, keypair));
}
