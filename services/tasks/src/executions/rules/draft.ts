import { create, fromJson } from "@bufbuild/protobuf";
import { durationFromMs, ValueSchema } from "@bufbuild/protobuf/wkt";
import { type ExecutionRequest, Priority } from "@depute/contracts/agenta/delegation/v0/execution_request_pb";
import type { Offer } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import { TaskLimitsSchema } from "@depute/contracts/depute/tasks/v1/task_pb";
import { TaskDraftSchema } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { timesOf } from "./terms.ts";

const PRIORITIES: ReadonlyMap<Priority, number> = new Map([
  [Priority.LOW, 0],
  [Priority.NORMAL, 3],
  [Priority.HIGH, 6],
  [Priority.URGENT, 9],
]);

/** Converts a request to the draft of its task. */
export function draftOf(request: ExecutionRequest, offer: Offer, nowMs: number, parentTaskId = "") {
  const { deadline } = timesOf(request, offer, nowMs);
  return create(TaskDraftSchema, {
    correlationId: request.correlationId ?? request.requestId,
    agentId: request.sellerAgentId,
    description: `${offer.title} (${request.offerId}, version ${request.offerVersion})`,
    input: fromJson(ValueSchema, request.input ?? {}),
    limits: create(TaskLimitsSchema, { total: durationFromMs(Math.max(1, deadline - nowMs)) }),
    priority: PRIORITIES.get(request.priority ?? Priority.NORMAL) ?? 0,
    parentTaskId,
  });
}
