import {
  type ExecutionError,
  ExecutionStatus,
} from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import type { Offer } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import { ApprovalState, SettlementState } from "@depute/contracts/depute/tasks/v1/execution_service_pb";
import { DeputeError, ErrorReason, newId, owningOrganization } from "@depute/core";
import type { ReadTx, WriteTx } from "@depute/store";
import { asCaller } from "../../core/index.ts";
import { loadRefusal, type ParentFacts, parentRefusal } from "../rules/admission.ts";
import { draftOf } from "../rules/draft.ts";
import { limitOf } from "../rules/price.ts";
import { afterFailure, awaitApproval, NOTHING } from "../rules/receipt.ts";
import type { ExecutionRecord } from "../rules/record.ts";
import { failed } from "../rules/refusal.ts";
import { firstState } from "../rules/settlement.ts";
import { timesOf } from "../rules/terms.ts";
import { countRejected, findExecution, loadOf, spentOnParts } from "../store/execution-rows.ts";
import type { Acceptable, Answered, Asked } from "./asked.ts";
import type { ExecutionsContext } from "./context.ts";

/** Maximum number of rejected requests in the store for one buyer. */
const MAX_REJECTED = 10_000;

/**
 * Returns the error if the parent execution or the offer's current load forbids the request; undefined otherwise. Reads
 * the parent and the load in the current transaction.
 */
export async function refusalNow(
  tx: ReadTx,
  { clock }: ExecutionsContext,
  { request }: Asked,
  offer: Offer,
): Promise<ExecutionError | undefined> {
  const nowMs = clock.now();
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

/**
 * Converts the task engine's refusal of a child task to the protocol's error: the parent is missing or has ended, a
 * cycle, or a tree that is too large. Returns undefined for any other error.
 */
export function treeRefusal(error: unknown): ExecutionError | undefined {
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

export async function accepted(
  tx: WriteTx,
  { engine, clock, book }: ExecutionsContext,
  asked: Asked,
  { offer, seller, admitted }: Acceptable,
): Promise<Answered> {
  const { request, principal, identity } = asked;
  const nowMs = clock.now();
  const { startFrom, startBy, deadline } = timesOf(request, offer, nowMs);
  const parent = await parentOf(tx, asked);
  const organization = owningOrganization(identity, parent);
  const draft = draftOf(request, offer, nowMs, parent?.taskId ?? "");
  // The execution's ids already identify a repeated request, so the task gets a new request id.
  const { taskId } = await engine.create(tx, {
    draft,
    admitted: { ...admitted, admission: { ...admitted.admission, startByMs: startBy } },
    delegator: principal,
    organization,
    requestId: newId(nowMs),
    viewer: asCaller(identity),
  });
  const needsApproval = request.executionConstraints?.requiresHumanApprovalBeforeStart === true;
  // Until an approval, no worker can take the task before the deadline. A task without an approval expires earlier, at
  // the latest start time.
  if (needsApproval) await engine.delay(tx, taskId, deadline);
  else if (startFrom > nowMs) await engine.delay(tx, taskId, startFrom);
  const record: ExecutionRecord = {
    ...blank(asked, organization, nowMs),
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

export async function rejected(
  tx: WriteTx,
  { clock, book }: ExecutionsContext,
  asked: Asked,
  error: ExecutionError,
): Promise<Answered> {
  const nowMs = clock.now();
  if ((await countRejected(tx, asked.buyer.id)) >= MAX_REJECTED) {
    throw new DeputeError(
      ErrorReason.LIMIT_EXCEEDED,
      "the store has too many rejected requests of this buyer: try again later",
      {
        metadata: { limit: "rejected_requests", max: String(MAX_REJECTED) },
      },
    );
  }
  const organization = owningOrganization(asked.identity, await parentOf(tx, asked));
  const receipt = await book.enter(tx, blank(asked, organization, nowMs), {
    executionId: "",
    status: ExecutionStatus.REJECTED,
    reason: error.message,
    error,
    nextAction: afterFailure(error),
  });
  return { receipt, repeated: false };
}

/**
 * Returns the parent execution of a request. Returns undefined if the request names no parent, or a parent that does
 * not exist.
 */
async function parentOf(tx: ReadTx, { request }: Asked): Promise<ExecutionRecord | undefined> {
  const { parentRequestId = "" } = request;
  return parentRequestId === "" ? undefined : findExecution(tx, parentRequestId);
}

/** Returns a new record in the state of a rejected request. */
function blank(asked: Asked, organization: string, nowMs: number): ExecutionRecord {
  const { request, digest, principal, identity } = asked;
  return {
    request,
    digest,
    buyerPrincipal: principal,
    authority: identity.blocks.map(({ revocationId }) => revocationId),
    organization,
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
