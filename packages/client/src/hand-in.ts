import { create } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import { ArtifactType } from "@depute/contracts/agenta/delegation/v0/common_pb";
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
 * Characters of JSON that a result has at most to be small. As a message it is six times as long at worst, so that as many
 * as one call takes stay below what a body may be, 4 MiB.
 */
const SMALL = 4096;

/** Where results go. */
export interface Desk {
  readonly calls: Client<typeof WorkerService>;
  readonly completions: Completions | undefined;
}

/** The call that hands in the result of a piece of work; it may be made again. */
export function handIn(
  { calls, completions }: Desk,
  assignment: Assignment,
  lease: Lease,
  result: WorkResult,
): () => Promise<object> {
  const completed = { lease, ...completion(result) };
  if (completions === undefined || isHeldUp(assignment, result) || !isSmall(result)) {
    return () => calls.completeAssignment(completed);
  }
  // Only the capability's schema is looked at, and what it costs to judge by concerns those of this capability alone.
  const group = assignment.task?.capabilityId ?? "";
  return async () => ({ status: await completions.add(completed, group) });
}

/** Whether somebody else is asked about the result before the call is answered, or may be. */
function isHeldUp({ task, workerToken }: Assignment, { attestationId, delivery }: WorkResult): boolean {
  if (task === undefined || delivery !== undefined) return true;
  const { contractId, overseerId, delegationId, executionRequestId } = task;
  const asked = [workerToken, contractId, overseerId, delegationId, executionRequestId, attestationId ?? ""];
  return asked.some((id) => id !== "");
}

function isSmall({ output, compact = null, minimal = "" }: WorkResult): boolean {
  return lengthOf(output) + lengthOf(compact) + minimal.length <= SMALL;
}

function lengthOf(value: unknown): number {
  return jsonText(value).length;
}

function completion(result: WorkResult) {
  const { output, compact, minimal, tokensUsed = 0, costMicrocents = 0n, attestationId = "" } = result;
  return {
    output: create(TaskOutputSchema, {
      full: toValue(output),
      ...(compact === undefined ? {} : { compact: toValue(compact) }),
      ...(minimal === undefined ? {} : { minimal }),
    }),
    usage: create(TaskUsageSchema, { tokensUsed, costMicrocents }),
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
