import { create, type JsonObject } from "@bufbuild/protobuf";
import {
  type Artifact,
  ErrorCode,
  type ExecutionError,
  type ExecutionReceipt,
  ExecutionReceiptSchema,
  type ExecutionStatus,
  type Financials,
  type NextAction,
  NextActionSchema,
  NextActionType,
  NextActor,
  type Usage,
} from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import type { ExecutionRequest } from "@depute/contracts/agenta/delegation/v0/execution_request_pb";
import { VerificationMode } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import { formatTime } from "@depute/core";

export const PROTOCOL_VERSION = "agenta.delegation.v0";

/**
 * Maximum length of a receipt's reason, in characters. (Agenta execution_receipt.schema.json
 * `status_reason`)
 */
const MAX_REASON = 1000;

/** The content of a receipt beyond the request's values. */
export interface ReceiptContent {
  readonly receiptId: string;
  /** The id of the execution; empty for a rejected request. */
  readonly executionId: string;
  readonly status: ExecutionStatus;
  /** The time at which the receipt is issued, in epoch milliseconds. */
  readonly issuedMs: number;
  /** The reason in words for people; empty for none. */
  readonly reason?: string;
  readonly error?: ExecutionError;
  readonly nextAction: NextAction;
  readonly result?: JsonObject;
  readonly artifacts?: readonly Artifact[];
  readonly usage?: Usage;
  readonly financials?: Partial<Omit<Financials, "$typeName" | "$unknown">>;
}

/** Builds a receipt for a request. The receipt repeats the request's metadata unchanged. */
export function receiptOf(request: ExecutionRequest, content: ReceiptContent): ExecutionReceipt {
  const { receiptId, executionId, status, issuedMs, reason = "", nextAction } = content;
  const { error, result, artifacts, usage, financials } = content;
  return create(ExecutionReceiptSchema, {
    protocolVersion: PROTOCOL_VERSION,
    messageType: "execution_receipt",
    receiptId,
    requestId: request.requestId,
    ...(executionId !== "" && { executionId }),
    offerId: request.offerId,
    offerVersion: request.offerVersion,
    sellerAgentId: request.sellerAgentId,
    buyerAgentId: request.buyerAgent?.agentId ?? "",
    status,
    ...(reason !== "" && { statusReason: reason.slice(0, MAX_REASON).toWellFormed() }),
    ...(result && { result }),
    ...(artifacts && { artifacts: { values: [...artifacts] } }),
    ...(usage && { usage }),
    ...(financials && { financials }),
    ...(error && { error }),
    nextAction,
    issuedAt: formatTime(issuedMs),
    ...(request.metadata && { metadata: request.metadata }),
  });
}

/** The next action of an execution for which no party must act: none. */
export const NOTHING: NextAction = create(NextActionSchema, { type: NextActionType.NONE });

function action(type: NextActionType, by: NextActor, deadlineMs?: number): NextAction {
  const deadlineAt = deadlineMs === undefined ? undefined : formatTime(deadlineMs);
  return create(NextActionSchema, { type, by, ...(deadlineAt && { deadlineAt }) });
}

/** Returns the next action of an execution whose start the buyer must approve by this time. */
export function awaitApproval(startByMs: number): NextAction {
  return action(NextActionType.MANUAL_REVIEW, NextActor.BUYER, startByMs);
}

/** Returns the next action of an execution whose verification must arrive by this time. */
export function awaitVerification(mode: VerificationMode, byMs: number): NextAction {
  return action(NextActionType.AWAIT_VERIFICATION, VERIFIERS[mode] ?? NextActor.VERIFIER, byMs);
}

const VERIFIERS: Partial<Record<VerificationMode, NextActor>> = {
  [VerificationMode.SELLER_ATTESTED]: NextActor.SELLER,
  [VerificationMode.BUYER_VERIFIED]: NextActor.BUYER,
  [VerificationMode.THIRD_PARTY_VERIFIED]: NextActor.VERIFIER,
};

/** Error codes after which no party has a next action. */
const HOPELESS: readonly ErrorCode[] = [
  ErrorCode.OFFER_NOT_FOUND,
  ErrorCode.BUYER_NOT_ALLOWED,
  ErrorCode.CANCELLED_BY_BUYER,
];

/** Returns the next action after a failure. */
export function afterFailure(error: ExecutionError | undefined): NextAction {
  if (error === undefined || HOPELESS.includes(error.code)) return NOTHING;
  if (error.code === ErrorCode.VERIFICATION_FAILED || error.code === ErrorCode.INTERNAL_ERROR) {
    return error.retryable
      ? action(NextActionType.RESUBMIT, NextActor.BUYER)
      : action(NextActionType.MANUAL_REVIEW, NextActor.SELLER);
  }
  return action(NextActionType.RESUBMIT, NextActor.BUYER);
}
