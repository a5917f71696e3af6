import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type CompleteAssignmentRequest,
  type CompletionOutcome,
  CompletionOutcomeSchema,
} from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { completeAssignment } from "./complete.ts";
import { callerOf, type TasksContext } from "./context.ts";
import { outcomeOf } from "./outcome.ts";

/**
 * Ends several tasks with their results, each by itself.
 *
 * @returns what has become of them, in the order of the requests
 * @throws what is a fault of the platform's and no refusal, once all have been judged; repeating the call is answered
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
    const outcome = outcomeOf(result, ({ status }) => ({ case: "status", value: status }) as const);
    return create(CompletionOutcomeSchema, { outcome });
  });
}
