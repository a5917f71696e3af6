import { create } from "@bufbuild/protobuf";
import type { CallOptions, HandlerContext } from "@connectrpc/connect";
import { DenialReasonSchema, DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { SerializedDCTSchema } from "@depute/contracts/delegateos/v0/token_pb";
import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import type {
  CreateTaskRequest,
  DelegateTaskRequest,
  TaskDraft,
} from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { type DeputeError, invalid } from "@depute/core";
import { parseToken } from "@depute/dct";
import { type Binding, type Identity, type Right, tokenDenied } from "@depute/service";
import { inputOfDraft } from "../contexts/carry-contexts.ts";
import {
  admit,
  checkDraft,
  type MoreOfWork,
  resolveTarget,
  resourceOf,
  type Target,
} from "../creation/admission.ts";
import {
  type Admitted,
  type CreateRequest,
  createTask,
  draftDigest,
  findCreated,
} from "../creation/create-task.ts";
import { DELEGATE_RIGHT } from "../rules/delegate-right.ts";
import { readTask } from "../store/task-rows.ts";
import { asCaller, type Caller, callOptions, type TasksContext } from "./context.ts";

/** The requests that create a task. */
type CreateInput = CreateTaskRequest | DelegateTaskRequest;

/** The new task, or the id of the existing task that the request id or the external id identifies. */
export interface CreateOutcome {
  readonly taskId: string;
  readonly task?: Task;
  /** The new task's events. */
  readonly events?: readonly TaskEvent[];
}

/**
 * Creates a task, once for each request id and each external id of a caller. The holder proof serves only once, so one
 * call of the tokens service verifies proof and permission together. The permission depends on the target, so the
 * function looks up the target first. This look-up finds what the claimed holder of the token may see. If no target is
 * found, the proof verifies only the caller, because an earlier call may have created the task.
 */
export async function createOnce(
  tasks: TasksContext,
  request: CreateInput,
  context: HandlerContext,
): Promise<CreateOutcome> {
  const checked = checkedDraftOf(request);
  const options = callOptions(tasks, context);
  const claim = await claimOf(tasks, context);
  let target: Target;
  try {
    target = await resolveTarget(tasks.dependencies, checked.draft, claim.principal, options);
  } catch (error) {
    return orKnown(tasks, checked, await claim.prove(), error);
  }
  const caller = await callerWithRight(tasks, context, claim, target);
  return createForCaller(tasks, checked, target, caller, options);
}

/** A checked draft with its policies. */
export interface CheckedDraft extends Omit<CreateRequest, "delegator"> {}

/** @throws DeputeError INVALID_REQUEST, LIMIT_EXCEEDED */
export function checkedDraftOf({ requestId, draft, reusePolicy, conflictPolicy }: CreateInput): CheckedDraft {
  if (draft === undefined) throw invalid("draft", "is required");
  checkDraft(draft);
  return { requestId, draft, digest: draftDigest(draft), policies: { reusePolicy, conflictPolicy } };
}

/**
 * Returns the caller. Requires that the caller's token grants the delegation to the target. For a caller without a
 * token, its other credentials prove its identity.
 *
 * @throws DeputeError TOKEN_DENIED, and the errors of Authority.authorise
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

/** Returns the permission that a delegation to a target needs, and the contract that the token must allow. */
export function rightTo(target: Target): { right: Right; binding: Binding | undefined } {
  const { contract } = target;
  const binding = contract && {
    contractId: contract.id,
    requiredCapabilities: contract.constraints?.requiredCapabilities ?? [],
  };
  return { right: { ...DELEGATE_RIGHT, resource: resourceOf(target) }, binding };
}

/** Creates a task for a target. The caller must already have proven that it may delegate to the target. */
export async function createForCaller(
  tasks: TasksContext,
  checked: CheckedDraft,
  target: Target,
  caller: Caller,
  options: CallOptions,
): Promise<CreateOutcome> {
  const { engine, dependencies, clock, treeLimits, contextMemory, dispatcher } = tasks;
  const { draft } = checked;
  const { principal } = caller;
  let admitted: Admitted;
  try {
    const depth = await depthOf(tasks, draft.parentTaskId);
    const fullDraft = await withInput(tasks, draft, caller);
    admitted = await admit(dependencies, fullDraft, target, principal, clock.now(), options, depth);
  } catch (error) {
    return orKnown(tasks, checked, principal, error);
  }
  const rights = { caller, organization: caller.organization, treeLimits, contextMemory, dispatcher };
  return createTask(engine, { ...checked, delegator: principal }, admitted, rights);
}

/**
 * Returns the existing task that the request id or the external id identifies; if there is none, throws `error`. So a
 * repeated call succeeds even if the admission of its draft now fails.
 */
export async function orKnown(
  { engine, contextMemory }: TasksContext,
  checked: CheckedDraft,
  delegator: string,
  error: unknown,
): Promise<CreateOutcome> {
  const taskId = await contextMemory.using(() =>
    engine.store.read((tx) => findCreated(tx, { ...checked, delegator }, contextMemory)),
  );
  if (taskId === undefined) throw error;
  return { taskId };
}

/** Returns the draft; if `inputFromContext` is set, with the data of its first context as its input. */
async function withInput(tasks: TasksContext, draft: TaskDraft, caller: Caller): Promise<TaskDraft> {
  if (!draft.inputFromContext) return draft;
  const { engine, contextMemory, clock } = tasks;
  const input = await contextMemory.using(() =>
    engine.store.read((tx) => inputOfDraft(tx, contextMemory, draft, caller, clock.now())),
  );
  return input === undefined ? draft : { ...draft, input };
}

/**
 * Returns the depth of a new child task in its tree. Returns an empty object if the parent does not exist, because a
 * later check refuses the task.
 */
async function depthOf({ engine }: TasksContext, parentTaskId: string): Promise<MoreOfWork> {
  if (parentTaskId === "") return { depth: 0 };
  const parent = await engine.store.read((tx) => readTask(tx, parentTaskId));
  return parent === undefined ? {} : { depth: parent.task.depth + 1 };
}

/** The principal that a caller claims to be, before the service checks the holder proof. */
export interface Claim {
  readonly principal: string;
  /**
   * The proven identity. Absent for a caller with a token, because the token's holder proof serves for only one later
   * check.
   */
  readonly identity?: Identity;
  /**
   * Verifies the caller's identity and, if the caller has a token, that the token is valid. Uses up the holder proof.
   * Call this method only if the request ends without a check of a permission.
   *
   * @returns the caller's principal
   * @throws DeputeError TOKEN_DENIED, and the errors of Authority.identify
   */
  prove(): Promise<string>;
}

/**
 * Returns the principal that the caller claims to be. With a token, this is the holder that the token names, not yet
 * proven. Without a token, it is the identified caller. Until `prove` succeeds, no response may depend on the claimed
 * principal.
 *
 * @throws DeputeError TOKEN_DENIED for a malformed token; without a token, the errors of Authority.identify
 */
export async function claimOf(tasks: TasksContext, context: HandlerContext): Promise<Claim> {
  const { authority, dependencies } = tasks;
  const text = /^dpop +([!-~]+) *$/i.exec(context.requestHeader.get("authorization") ?? "")?.[1];
  if (text === undefined) {
    const identity = await authority.identify(context);
    return { principal: identity.principal, identity, prove: async () => identity.principal };
  }
  const token = create(SerializedDCTSchema, { token: text, format: "delegateos-sjt-v1" });
  const read = parseToken({ token: text, format: "delegateos-sjt-v1" });
  if (!read.ok) {
    const { type, detail } = read.denial;
    throw denied(
      type === "token_too_large" ? DenialType.TOKEN_TOO_LARGE : DenialType.MALFORMED_TOKEN,
      detail,
    );
  }
  const holder = (read.token.attenuations.at(-1) ?? read.token.authority).delegatee;
  return {
    principal: holder,
    async prove() {
      // Requires a valid token, because `identify` verifies only the proof. The comparison below then refuses a caller
      // that is not the token's holder.
      const { result } = await dependencies.tokens.inspectToken({ token }, callOptions(tasks, context));
      if (result.case === "denial") throw tokenDenied(result.value);
      const { principal } = await authority.identify(context);
      if (principal !== holder) throw notTheHolder();
      return principal;
    },
  };
}

/** Returns the error for a caller that is not the token's holder. */
export function notTheHolder(): DeputeError {
  return denied(DenialType.INVALID_PROOF, "jwk");
}

function denied(type: DenialType, detail: string | undefined): DeputeError {
  return tokenDenied(create(DenialReasonSchema, { type, detail: detail ?? "" }));
}
