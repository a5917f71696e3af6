import { create } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import { ArtifactType } from "@depute/contracts/agenta/delegation/v0/agenta_common_pb";
import {
  TaskDeliverySchema,
  TaskOutputSchema,
  TaskUsageSchema,
} from "@depute/contracts/depute/tasks/v1/task_pb";
import type { Assignment, Lease, WorkerService } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import type { Completions } from "./completions.ts";
import { jsonText, toValue } from "./json-value.ts";
import type { WorkDelivery, WorkResult } from "./work.ts";

/**
 * Maximum length of a small result's JSON, in characters. The encoded message may have six times as many bytes. Even
 * then, a full batch stays below the body limit of 4 MiB.
 */
const SMALL = 4096;

/** The two ways to complete an assignment: alone, or in a batch. */
export interface CompletionCalls {
  readonly calls: Client<typeof WorkerService>;
  readonly completions: Completions | undefined;
}

/** Returns the call that completes an assignment with a result. The call is safe to repeat. */
export function completionCallOf(
  { calls, completions }: CompletionCalls,
  assignment: Assignment,
  lease: Lease,
  result: WorkResult,
): () => Promise<object> {
  const completed = { lease, ...completion(result) };
  if (completions === undefined || mayWait(assignment, result) || !isSmall(result)) {
    return () => calls.completeAssignment(completed);
  }
  // A capability's schema may make the validation of results slow. So only results of the same capability share a call.
  const group = assignment.task?.capabilityId ?? "";
  return async () => ({ status: await completions.add(completed, group) });
}

/** Whether the platform may delay its answer to the call, for example until a review is decided. */
function mayWait({ task, workerToken }: Assignment, { attestationId, delivery }: WorkResult): boolean {
  if (task === undefined || delivery !== undefined) return true;
  const { contractId, overseerId, delegationId, executionRequestId } = task;
  const conditionIds = [
    workerToken,
    contractId,
    overseerId,
    delegationId,
    executionRequestId,
    attestationId ?? "",
  ];
  return conditionIds.some((id) => id !== "");
}

function isSmall({ output, compact = null, minimal = "" }: WorkResult): boolean {
  return lengthOf(output) + lengthOf(compact) + minimal.length <= SMALL;
}

function lengthOf(value: unknown): number {
  return jsonText(value).length;
}

function completion(result: WorkResult) {
  const { output, compact, minimal, tokensUsed = 0, costMicrocents = 0, attestationId = "" } = result;
  return {
    output: create(TaskOutputSchema, {
      full: toValue(output),
      ...(compact === undefined ? {} : { compact: toValue(compact) }),
      ...(minimal === undefined ? {} : { minimal }),
    }),
    usage: create(TaskUsageSchema, {
      tokensUsed: BigInt(tokensUsed),
      costMicrocents: BigInt(costMicrocents),
    }),
    attestationId,
    ...(result.delivery && { delivery: deliveryOf(result.delivery) }),
  };
}

function deliveryOf({ artifacts = [], usage, quotedAmount }: WorkDelivery) {
  return create(TaskDeliverySchema, {
    artifacts: artifacts.map(({ type, ...rest }) => ({
      artifactType: ArtifactType[type.toUpperCase() as keyof typeof ArtifactType],
      ...rest,
    })),
    ...(usage && { usage }),
    ...(quotedAmount !== undefined && { quotedAmount }),
  });
}
