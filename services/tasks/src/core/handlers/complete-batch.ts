import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type CompleteAssignmentRequest,
  type CompletionOutcome,
  CompletionOutcomeSchema,
} from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { completeAssignment } from "./complete.ts";
import { callerOf, type TasksContext } from "./context.ts";
import { batchOutcome } from "./outcome.ts";

/**
 * Completes several tasks independently of each other.
 *
 * @returns the outcomes, in the order of the requests
 * @throws DeputeError the errors of Authority.identify; an error with the reason INTERNAL, after every request was
 * handled; the caller may then repeat the call
 */
export async function completeAssignments(
  tasks: TasksContext,
  requests: readonly CompleteAssignmentRequest[],
  context: HandlerContext,
): Promise<CompletionOutcome[]> {
  const caller = await callerOf(tasks, context);
  const ended = await Promise.allSettled(
    requests.map((request) => completeAssignment(tasks, caller, request, context, "without input")),
  );
  return ended.map((result) => {
    const outcome = batchOutcome(result, ({ status }) => ({ case: "status", value: status }) as const);
    return create(CompletionOutcomeSchema, { outcome });
  });
}
