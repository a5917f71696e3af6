import type { CallOptions, HandlerContext } from "@connectrpc/connect";
import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import type {
  CreateTaskRequest,
  DelegateTaskRequest,
  TaskDraft,
} from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { invalid } from "@depute/core";
import type { Binding, Right } from "@depute/service";
import { asCaller, type Caller } from "../caller.ts";
import { inputOfDraft } from "../contexts/carry-contexts.ts";
import { admit, checkDraft, resolveTarget, resourceOf, type Target } from "../creation/admission.ts";
import { type Admitted, type CreateRequest, createTask, findCreated } from "../creation/create-task.ts";
import type { MoreOfWork } from "../creation/delegation-policy.ts";
import { draftDigest } from "../engine/digest.ts";
import { DELEGATE_RIGHT } from "../rules/delegate-right.ts";
import { readTask } from "../store/task-rows.ts";
import { type Claim, claimOf, notTheHolder } from "./claim-of-caller.ts";
import { callOptions, type TasksContext } from "./context.ts";

/** A call's request, as far as handing over goes. */
type HandOver = CreateTaskRequest | DelegateTaskRequest;

/** The new task, or the id of the one that was there. */
export interface HandedOver {
  readonly taskId: string;
  readonly task?: Task;
}

/**
 * Hands over work, once for each request id and each external id of a caller.
 *
 * A holder proof counts once, so a call asks the tokens service once: for the right, which the target is part of. Until
 * then, what the holder of the token sees is what is there. Only when there is no such target, it asks who calls, for
 * the task may have been created while there was one.
 */
export async function handOver(
  tasks: TasksContext,
  request: HandOver,
  context: HandlerContext,
): Promise<HandedOver> {
  const piece = pieceOf(request);
  const options = callOptions(tasks, context);
  const claim = await claimOf(tasks, context);
  let target: Target;
  try {
    target = await resolveTarget(tasks.dependencies, piece.draft, claim.principal, options);
  } catch (error) {
    return orKnown(tasks, piece, await claim.prove(), error);
  }
  const caller = await callerWithRight(tasks, context, claim, target);
  return handOverTo(tasks, piece, target, caller, options);
}

/** What is asked to be done, once it is known to be sound by itself. */
export interface Piece extends Omit<CreateRequest, "delegator"> {}

/** @throws DeputeError INVALID_REQUEST, LIMIT_EXCEEDED */
export function pieceOf({ requestId, draft, reusePolicy, conflictPolicy }: HandOver): Piece {
  if (draft === undefined) throw invalid("draft", "is required");
  checkDraft(draft);
  return { requestId, draft, digest: draftDigest(draft), policies: { reusePolicy, conflictPolicy } };
}

/**
 * The caller, once its token is known to grant the delegation to a target. Without a token it is who it is.
 *
 * @throws DeputeError TOKEN_DENIED
 */
export async function callerWithRight(
  { authority }: TasksContext,
  context: HandlerContext,
  claim: Claim,
  target: Target,
): Promise<Caller> {
  const { right, binding } = rightTo(target);
  const caller = asCaller(claim.identity ?? (await authority.authorise(context, right, binding)));
  if (caller.principal !== claim.principal) throw notTheHolder();
  return caller;
}

/** The right that work for a target needs, and what its token is held to beside that. */
export function rightTo(target: Target): { right: Right; binding: Binding | undefined } {
  const { contract } = target;
  const binding = contract && {
    contractId: contract.id,
    requiredCapabilities: contract.constraints?.requiredCapabilities ?? [],
  };
  return { right: { ...DELEGATE_RIGHT, resource: resourceOf(target) }, binding };
}

/** Hands a piece of work over to its target. */
export async function handOverTo(
  tasks: TasksContext,
  piece: Piece,
  target: Target,
  caller: Caller,
  options: CallOptions,
): Promise<HandedOver> {
  const { engine, dependencies, clock, treeLimits, contextMemory, dispatcher } = tasks;
  const { draft } = piece;
  const { principal } = caller;
  let admitted: Admitted;
  try {
    const depth = await depthOf(tasks, draft.parentTaskId);
    const whole = await withInput(tasks, draft, caller);
    admitted = await admit(dependencies, whole, target, principal, clock.now(), options, depth);
  } catch (error) {
    return orKnown(tasks, piece, principal, error);
  }
  const rights = { caller, treeLimits, contextMemory, dispatcher };
  return createTask(engine, { ...piece, delegator: principal }, admitted, rights);
}

/** What is refused now may have been created when it was not. */
export async function orKnown(
  { engine, contextMemory }: TasksContext,
  piece: Piece,
  delegator: string,
  error: unknown,
): Promise<HandedOver> {
  const taskId = await engine.store.read((tx) => findCreated(tx, { ...piece, delegator }, contextMemory));
  if (taskId === undefined) throw error;
  return { taskId };
}

/** A draft with the input that its worker will get. */
async function withInput(tasks: TasksContext, draft: TaskDraft, caller: Caller): Promise<TaskDraft> {
  if (!draft.inputFromContext) return draft;
  const { engine, contextMemory, clock } = tasks;
  const input = await engine.store.read((tx) => inputOfDraft(tx, contextMemory, draft, caller, clock.now()));
  return input === undefined ? draft : { ...draft, input };
}

/** How deep a part of a task stands; nothing where there is no such task, which is refused later. */
async function depthOf({ engine }: TasksContext, parentTaskId: string): Promise<MoreOfWork> {
  if (parentTaskId === "") return { depth: 0 };
  const parent = await engine.store.read((tx) => readTask(tx, parentTaskId));
  return parent === undefined ? {} : { depth: parent.task.depth + 1 };
}
