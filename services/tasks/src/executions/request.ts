import { create, fromJson } from "@bufbuild/protobuf";
import { durationFromMs, ValueSchema } from "@bufbuild/protobuf/wkt";
import type { CallOptions, HandlerContext } from "@connectrpc/connect";
import {
  ErrorCode,
  type ExecutionError,
  type ExecutionReceipt,
  ExecutionStatus,
} from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import {
  type ExecutionRequest,
  ExecutionRequestSchema,
  Priority,
} from "@depute/contracts/agenta/delegation/v0/execution_request_pb";
import type { Offer } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import { type Agent, AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import { ApprovalState, SettlementState } from "@depute/contracts/depute/tasks/v1/execution_service_pb";
import { TaskLimitsSchema } from "@depute/contracts/depute/tasks/v1/task_pb";
import {
  IdConflictPolicy,
  IdReusePolicy,
  TaskDraftSchema,
} from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { DeputeError, ErrorReason, newId } from "@depute/core";
import { type Identity, mayActFor, reasonOf } from "@depute/service";
import type { ReadTx, WriteTx } from "@depute/store";
import { admit } from "../admission.ts";
import { type Admitted, createTaskWithin } from "../create-task.ts";
import { messageDigest } from "../digest.ts";
import { asCaller, callOptions } from "../handlers/context.ts";
import { DELEGATE_RIGHT } from "../handlers/create.ts";
import { checkValue, MAX_VALUE_BYTES } from "../rules/values.ts";
import type { ExecutionsContext } from "./context.ts";
import { lookUpOffer, resolveWork } from "./look-up.ts";
import { readReceipt } from "./receipt-rows.ts";
import { findByKey, findExecution, loadOf, spentOnParts } from "./rows.ts";
import { loadRefusal, offerRefusal, type ParentFacts, parentRefusal } from "./rules/admission.ts";
import { checkRequestForms } from "./rules/forms.ts";
import { limitOf } from "./rules/price.ts";
import { afterFailure, awaitApproval, NOTHING } from "./rules/receipt.ts";
import type { ExecutionRecord } from "./rules/record.ts";
import { failed } from "./rules/refusal.ts";
import { firstState } from "./rules/settlement.ts";
import { timesOf } from "./rules/terms.ts";

/** The first receipt of a request, and whether it was issued before. */
export interface Answered {
  readonly receipt: ExecutionReceipt;
  readonly repeated: boolean;
}

/** A request with who asks, as far as nothing of it changes while it is looked at. */
interface Asked {
  readonly request: ExecutionRequest;
  readonly digest: string;
  readonly identity: Identity;
  readonly buyer: Agent;
  /** Whose the execution is: the buyer's key, or whoever calls for a buyer without one. */
  readonly principal: string;
}

/** What is needed to accept a request. */
interface Acceptable {
  readonly offer: Offer;
  readonly seller: Agent;
  readonly admitted: Admitted;
}

/**
 * Answers a request with its first receipt. What the platform's other services know is asked first; everything that
 * executions of others decide, the transaction decides.
 *
 * @throws DeputeError CALLER_NOT_ALLOWED, REQUEST_ID_REUSED, INVALID_REQUEST, LIMIT_EXCEEDED, DEPENDENCY_UNAVAILABLE
 */
export async function requestExecution(
  executions: ExecutionsContext,
  request: ExecutionRequest,
  context: HandlerContext,
): Promise<Answered> {
  const { tasks } = executions;
  const { store } = tasks.engine;
  const input = fromJson(ValueSchema, request.input ?? {});
  checkValue(input, "request.input", MAX_VALUE_BYTES);
  checkRequestForms(request);
  const asked = await identifyBuyer(executions, request, context);
  const known = await store.read((tx) => findAnswered(tx, asked));
  if (known !== undefined) return known;
  const options = callOptions(tasks, context);
  const considered = await consider(executions, asked, options);
  const reject = (error: ExecutionError) =>
    store.write(async (tx) => (await findAnswered(tx, asked)) ?? rejected(tx, executions, asked, error));
  if ("code" in considered) return reject(considered);
  try {
    return await store.write(async (tx) => {
      const before = await findAnswered(tx, asked);
      if (before !== undefined) return before;
      const refusal = await refusalNow(tx, executions, asked, considered.offer);
      if (refusal !== undefined) return rejected(tx, executions, asked, refusal);
      return accepted(tx, executions, asked, considered);
    });
  } catch (error) {
    const refusal = treeRefusal(error);
    if (refusal === undefined) throw error;
    return reject(refusal);
  }
}

/** Who asks: the buyer is an agent of the caller's. Its organization is judged with the request. */
async function identifyBuyer(
  { tasks }: ExecutionsContext,
  request: ExecutionRequest,
  context: HandlerContext,
): Promise<Asked> {
  const resource = `${request.sellerAgentId}/${request.offerId}`;
  const identity = await tasks.authority.authorise(context, { ...DELEGATE_RIGHT, resource });
  const id = request.buyerAgent?.agentId ?? "";
  const options = callOptions(tasks, context);
  const buyer = await findAgent(tasks.dependencies, id, identity.principal, options);
  if (buyer?.status !== AgentStatus.ACTIVE || !mayActFor(identity, buyer.principal)) {
    throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "the buyer is no agent of the caller's", {
      metadata: { agent: id },
      violations: [{ field: "request.buyer_agent.agent_id", description: "is no agent of the caller's" }],
    });
  }
  return {
    request,
    digest: messageDigest(ExecutionRequestSchema, request),
    identity,
    buyer,
    principal: buyer.principal || identity.principal,
  };
}

/** An agent by somebody's sight; undefined for one that is not there for it. */
async function findAgent(
  { agents }: ExecutionsContext["tasks"]["dependencies"],
  id: string,
  viewer: string,
  options: CallOptions,
): Promise<Agent | undefined> {
  try {
    return (await agents.getAgent({ id, viewer }, options)).agent;
  } catch (error) {
    if (reasonOf(error) === ErrorReason.AGENT_NOT_FOUND) return undefined;
    throw error;
  }
}

/** @throws DeputeError REQUEST_ID_REUSED when the key or the id came with another request */
async function findAnswered(tx: ReadTx, { request, digest }: Asked): Promise<Answered | undefined> {
  const { idempotencyKey, requestId } = request;
  const byKey = await findByKey(tx, request.buyerAgent?.agentId ?? "", idempotencyKey);
  if (byKey?.digest === digest) {
    return { receipt: await readReceipt(tx, byKey.request.requestId, 1), repeated: true };
  }
  const field = byKey === undefined ? "request.request_id" : "request.idempotency_key";
  if (byKey === undefined && (await findExecution(tx, requestId)) === undefined) return undefined;
  throw new DeputeError(ErrorReason.REQUEST_ID_REUSED, `${field}: came with another request before`, {
    metadata: { request_id: byKey === undefined ? requestId : idempotencyKey },
    violations: [{ field, description: "came with another request before" }],
  });
}

/** What the other services say to a request: what is needed to accept it, or why it is refused. */
async function consider(
  executions: ExecutionsContext,
  asked: Asked,
  options: CallOptions,
): Promise<Acceptable | ExecutionError> {
  const { dependencies, clock } = executions.tasks;
  const { request, buyer, principal, identity } = asked;
  if (request.buyerAgent?.organizationId !== buyer.organization) {
    return failed(ErrorCode.BUYER_NOT_ALLOWED, "the buyer is registered with another organization", {
      path: "/buyer_agent/organization_id",
    });
  }
  const found = await lookUpOffer(executions, request, identity.principal, options);
  const refusal = offerRefusal(request, found, clock.now());
  if (refusal !== undefined) return refusal;
  if (found.kind !== "offer") throw new Error("an offer that is not there was not refused");
  const { offer } = found.facts;
  const seller = await findAgent(dependencies, request.sellerAgentId, "", options);
  if (seller?.status !== AgentStatus.ACTIVE) {
    return failed(ErrorCode.OFFER_NOT_FOUND, "the seller is not there any more");
  }
  const unfit = await inputRefusal(executions, request, offer, options);
  if (unfit !== undefined) return unfit;
  const target = await resolveWork(executions, offer, seller, options);
  const draft = draftOf(request, offer, clock.now());
  try {
    const { admission, ...rest } = await admit(
      dependencies,
      draft,
      { ...target, capability: undefined },
      principal,
      clock.now(),
      options,
    );
    const { capability } = target;
    const more = { executionRequestId: request.requestId };
    const own = capability && { capabilityId: capability.id, capabilityHash: capability.h };
    return { offer, seller, admitted: { ...rest, admission: { ...admission, ...own, ...more } } };
  } catch (error) {
    const reason = reasonOf(error);
    // The manifest of the buyer does not let it buy here, or nobody could look at the seller's results.
    if (reason === ErrorReason.CALLER_NOT_ALLOWED) {
      return failed(ErrorCode.BUYER_NOT_ALLOWED, "the buyer's own manifest does not allow it");
    }
    if (reason === ErrorReason.AGENT_NOT_FOUND) {
      return failed("capacity_unavailable", "the seller's overseer is not there");
    }
    throw error;
  }
}

/** Whether the input does not fit the offer's schema, which no code but the verifier's runs. */
async function inputRefusal(
  { tasks }: ExecutionsContext,
  request: ExecutionRequest,
  { inputSchema: schema }: Offer,
  options: CallOptions,
): Promise<ExecutionError | undefined> {
  if (schema === undefined) return undefined;
  const mode = "schema_validation_failure";
  const valueJson = JSON.stringify(request.input ?? {});
  try {
    const { violations } = await tasks.dependencies.verification.checkSchema({ schema, valueJson }, options);
    const [first] = violations;
    if (first === undefined) return undefined;
    const faults = violations.map(({ path, message }) => ({ path: `/input${path}`, message }));
    return failed(mode, `/input${first.path}: ${first.message}`, { path: `/input${first.path}`, faults });
  } catch (error) {
    if (reasonOf(error) !== ErrorReason.CHECK_TIMEOUT) throw error;
    return failed(mode, "the input could not be checked against the offer's schema in time", {
      path: "/input",
    });
  }
}

/** What only the transaction knows: the execution that this one is a part of, and how busy the seller is. */
async function refusalNow(
  tx: ReadTx,
  { tasks }: ExecutionsContext,
  { request }: Asked,
  offer: Offer,
): Promise<ExecutionError | undefined> {
  const nowMs = tasks.clock.now();
  if (request.parentRequestId !== undefined) {
    const parent = await parentFacts(tx, request.parentRequestId);
    const refusal = parentRefusal(request, parent, timesOf(request, offer, nowMs).deadline);
    if (refusal !== undefined) return refusal;
  }
  return loadRefusal(offer, await loadOf(tx, request.offerId, nowMs));
}

async function parentFacts(tx: ReadTx, requestId: string): Promise<ParentFacts | undefined> {
  const parent = await findExecution(tx, requestId);
  if (parent === undefined) return undefined;
  return {
    sellerId: parent.request.sellerAgentId,
    status: parent.status,
    currency: parent.request.payment?.currency ?? "",
    limit: parent.limit,
    spent: await spentOnParts(tx, requestId),
    deadline: parent.deadline,
  };
}

/** A tree of work that grew too large, or goes round: refusals of the task engine in the protocol's words. */
function treeRefusal(error: unknown): ExecutionError | undefined {
  if (!(error instanceof DeputeError)) return undefined;
  const path = { path: "/parent_request_id" };
  switch (error.reason) {
    case ErrorReason.TASK_CYCLE:
    case ErrorReason.TASK_STATE_CONFLICT:
    case ErrorReason.TASK_NOT_FOUND:
      return failed("schema_validation_failure", error.message, path);
    case ErrorReason.LIMIT_EXCEEDED:
      return (error.metadata.limit ?? "").startsWith("tree.")
        ? failed("capacity_unavailable", error.message, path)
        : undefined;
    default:
      return undefined;
  }
}

const PRIORITIES: ReadonlyMap<Priority, number> = new Map([
  [Priority.LOW, 0],
  [Priority.NORMAL, 3],
  [Priority.HIGH, 6],
  [Priority.URGENT, 9],
]);

/** A task of an execution has no external id that could be taken. */
const ANY = {
  reusePolicy: IdReusePolicy.UNSPECIFIED,
  conflictPolicy: IdConflictPolicy.UNSPECIFIED,
} as const;

/** The task that a request is. */
function draftOf(request: ExecutionRequest, offer: Offer, nowMs: number, parentTaskId = "") {
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

async function accepted(
  tx: WriteTx,
  { tasks, book }: ExecutionsContext,
  asked: Asked,
  { offer, seller, admitted }: Acceptable,
): Promise<Answered> {
  const { request, principal, identity } = asked;
  const { engine, treeLimits, contextMemory } = tasks;
  const nowMs = tasks.clock.now();
  const { startFrom, startBy, deadline } = timesOf(request, offer, nowMs);
  const parent = request.parentRequestId && (await findExecution(tx, request.parentRequestId));
  const draft = draftOf(request, offer, nowMs, parent ? parent.taskId : "");
  // The request's own ids are compared with all of its content; this one is the task's alone.
  const creation = { delegator: principal, requestId: newId(), draft, digest: asked.digest, policies: ANY };
  const rights = { caller: asCaller(identity), treeLimits, contextMemory };
  const timed = { ...admitted, admission: { ...admitted.admission, startByMs: startBy } };
  const { taskId } = await createTaskWithin(tx, engine, creation, timed, rights);
  const needsApproval = request.executionConstraints?.requiresHumanApprovalBeforeStart === true;
  // What waits for a person is held back until it has to have begun: then it is over anyway.
  if (needsApproval) await engine.availableFrom(tx, taskId, deadline);
  else if (startFrom > nowMs) await engine.availableFrom(tx, taskId, startFrom);
  const record: ExecutionRecord = {
    ...blank(asked, nowMs),
    sellerPrincipal: seller.principal,
    sellerOrganization: seller.organization,
    taskId,
    status: ExecutionStatus.ACCEPTED,
    approval: needsApproval ? ApprovalState.AWAITED : ApprovalState.UNSPECIFIED,
    settlement: firstState(request.payment?.escrowRequired === true),
    startBy,
    deadline,
    endMs: undefined,
  };
  const receipt = await book.enter(
    tx,
    record,
    {
      executionId: taskId,
      status: ExecutionStatus.ACCEPTED,
      nextAction: needsApproval ? awaitApproval(startBy) : NOTHING,
    },
    offer,
  );
  return { receipt, repeated: false };
}

async function rejected(
  tx: WriteTx,
  { tasks, book }: ExecutionsContext,
  asked: Asked,
  error: ExecutionError,
): Promise<Answered> {
  const nowMs = tasks.clock.now();
  const receipt = await book.enter(tx, blank(asked, nowMs), {
    executionId: "",
    status: ExecutionStatus.REJECTED,
    reason: error.message,
    error,
    nextAction: afterFailure(error),
  });
  return { receipt, repeated: false };
}

/** The record of a request that is rejected. */
function blank({ request, digest, principal }: Asked, nowMs: number): ExecutionRecord {
  return {
    request,
    digest,
    buyerPrincipal: principal,
    sellerPrincipal: "",
    sellerOrganization: "",
    taskId: "",
    status: ExecutionStatus.REJECTED,
    approval: ApprovalState.UNSPECIFIED,
    settlement: SettlementState.UNSPECIFIED,
    limit: limitOf(request),
    finalAmount: undefined,
    captureId: "",
    startBy: nowMs,
    deadline: nowMs,
    verifyBy: undefined,
    createMs: nowMs,
    endMs: nowMs,
    lastNumber: 1,
  };
}
