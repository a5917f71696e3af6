import type { HandlerContext } from "@connectrpc/connect";
import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import type {
  CreateTaskRequest,
  DelegateTaskRequest,
} from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { invalid } from "@depute/core";
import { admit, checkDraft, resolveTarget, resourceOf, type Target } from "../admission.ts";
import { type Admitted, type CreateRequest, createTask, findCreated } from "../create-task.ts";
import type { MoreOfWork } from "../delegation-policy.ts";
import { draftDigest } from "../digest.ts";
import { readTask } from "../store/task-rows.ts";
import { claimOf, notTheHolder } from "./claim-of-caller.ts";
import { asCaller, callOptions, type TasksContext } from "./context.ts";

/** The right that a token of a delegator has to grant. */
export const DELEGATE_RIGHT = { namespace: "depute:tasks", action: "delegate" } as const;

/**
 * Hands over work, once for each request id and each external id of a caller.
 *
 * @returns the new task, or the id of the one that was there
 */
export async function handOver(
  tasks: TasksContext,
  { requestId, draft, reusePolicy, conflictPolicy }: CreateTaskRequest | DelegateTaskRequest,
  context: HandlerContext,
): Promise<{ readonly taskId: string; readonly task?: Task }> {
  const { engine, authority, dependencies, clock, treeLimits, contextMemory, dispatcher } = tasks;
  const policies = { reusePolicy, conflictPolicy };
  if (draft === undefined) throw invalid("draft", "is required");
  checkDraft(draft);
  const digest = draftDigest(draft);
  const options = callOptions(tasks, context);
  // What is refused now may have been created when it was not.
  const orKnown = async (error: unknown, delegator: string) => {
    const request: CreateRequest = { delegator, requestId, draft, digest, policies };
    const taskId = await engine.store.read((tx) => findCreated(tx, request, contextMemory));
    if (taskId === undefined) throw error;
    return { taskId };
  };

  // A holder proof counts once, so a call asks the tokens service once: for the right, which the target is part of. Until
  // then, what the holder of the token sees is what is there. Only when there is no such target, it asks who calls, for
  // the task may have been created while there was one.
  const claim = await claimOf(tasks, context);
  let target: Target;
  try {
    target = await resolveTarget(dependencies, draft, claim.principal, options);
  } catch (error) {
    return orKnown(error, await claim.prove());
  }
  const binding = target.contract && {
    contractId: target.contract.id,
    requiredCapabilities: target.contract.constraints?.requiredCapabilities ?? [],
  };
  const right = { ...DELEGATE_RIGHT, resource: resourceOf(target) };
  const caller = asCaller(claim.identity ?? (await authority.authorise(context, right, binding)));
  const { principal } = caller;
  if (principal !== claim.principal) throw notTheHolder();
  let admitted: Admitted;
  try {
    const depth = await depthOf(tasks, draft.parentTaskId);
    admitted = await admit(dependencies, draft, target, principal, clock.now(), options, depth);
  } catch (error) {
    return orKnown(error, principal);
  }
  const request = { delegator: principal, requestId, draft, digest, policies };
  return createTask(engine, request, admitted, { caller, treeLimits, contextMemory, dispatcher });
}

/** How deep a part of a task stands; nothing where there is no such task, which is refused later. */
async function depthOf({ engine }: TasksContext, parentTaskId: string): Promise<MoreOfWork> {
  if (parentTaskId === "") return { depth: 0 };
  const parent = await engine.store.read((tx) => readTask(tx, parentTaskId));
  return parent === undefined ? {} : { depth: parent.task.depth + 1 };
}
