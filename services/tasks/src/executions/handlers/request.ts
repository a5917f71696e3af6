import { fromJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import type { ExecutionError } from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import {
  type ExecutionRequest,
  ExecutionRequestSchema,
} from "@depute/contracts/agenta/delegation/v0/execution_request_pb";
import { AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import { DeputeError, ErrorReason, requestIdReused } from "@depute/core";
import { mayActFor, messageDigest } from "@depute/service";
import type { ReadTx } from "@depute/store";
import { checkValue, DELEGATE_RIGHT, MAX_VALUE_BYTES } from "../../core/index.ts";
import { checkRequestForms } from "../rules/forms.ts";
import { findByKey, findExecution } from "../store/execution-rows.ts";
import { readReceipt } from "../store/receipt-rows.ts";
import type { Answered, Asked } from "./asked.ts";
import { consider, findAgent } from "./consider.ts";
import { callOptions, type ExecutionsContext } from "./context.ts";
import { accepted, refusalNow, rejected, treeRefusal } from "./enter.ts";

/**
 * Handles an execution request and returns its first receipt. Checks by other services come first. The transaction then
 * makes every decision that depends on other executions.
 *
 * @throws DeputeError CALLER_NOT_ALLOWED, REQUEST_ID_REUSED, INVALID_REQUEST, LIMIT_EXCEEDED, DEPENDENCY_UNAVAILABLE,
 * and the errors of Authority.authorise
 */
export async function requestExecution(
  executions: ExecutionsContext,
  request: ExecutionRequest,
  context: HandlerContext,
): Promise<Answered> {
  const { store } = executions.engine;
  const input = fromJson(ValueSchema, request.input ?? {});
  checkValue(input, "request.input", MAX_VALUE_BYTES);
  checkRequestForms(request);
  const asked = await identifyBuyer(executions, request, context);
  const known = await store.read((tx) => findAnswered(tx, asked));
  if (known !== undefined) return known;
  const options = callOptions(executions, context);
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

/**
 * Returns the request with its buyer, which must be an agent of the caller. A later check compares the buyer's
 * organization with the request.
 */
async function identifyBuyer(
  executions: ExecutionsContext,
  request: ExecutionRequest,
  context: HandlerContext,
): Promise<Asked> {
  const resource = `${request.sellerAgentId}/${request.offerId}`;
  const identity = await executions.authority.authorise(context, { ...DELEGATE_RIGHT, resource });
  const id = request.buyerAgent?.agentId ?? "";
  const options = callOptions(executions, context);
  const buyer = await findAgent(executions, id, identity.principal, options);
  if (buyer?.status !== AgentStatus.ACTIVE || !mayActFor(identity, buyer.principal)) {
    throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "the buyer is not an agent of the caller", {
      metadata: { agent: id },
      violations: [{ field: "request.buyer_agent.agent_id", description: "is not an agent of the caller" }],
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

/** @throws DeputeError REQUEST_ID_REUSED if another request had the same idempotency key or request id */
async function findAnswered(tx: ReadTx, { request, digest }: Asked): Promise<Answered | undefined> {
  const { idempotencyKey, requestId } = request;
  const byKey = await findByKey(tx, request.buyerAgent?.agentId ?? "", idempotencyKey);
  if (byKey?.digest === digest) {
    return { receipt: await readReceipt(tx, byKey.request.requestId, 1), repeated: true };
  }
  const field = byKey === undefined ? "request.request_id" : "request.idempotency_key";
  if (byKey === undefined && (await findExecution(tx, requestId)) === undefined) return undefined;
  throw requestIdReused(byKey === undefined ? requestId : idempotencyKey, "request", field);
}
