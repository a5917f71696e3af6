import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  ExecutionReceiptSchema,
  ExecutionStatus,
} from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import {
  type ExecutionService,
  type GetExecutionRequest,
  type ListExecutionsRequest,
  type NumberedReceipt,
  NumberedReceiptSchema,
  SettlementSchema,
  type WatchReceiptsRequest,
} from "@depute/contracts/depute/tasks/v1/execution_service_pb";
import {
  DeputeError,
  decodePageToken,
  ErrorReason,
  encodePageToken,
  invalid,
  pageSize,
  toTimestamp,
} from "@depute/core";
import { bytesOf, cutPage, follow, linkSignals, mayActFor, pageOfList } from "@depute/service";
import type { ReadTx } from "@depute/store";
import type { Caller } from "../../core/index.ts";
import { executionNotFound, stateConflict } from "../rules/errors.ts";
import { isTerminal } from "../rules/machine.ts";
import type { ExecutionRecord } from "../rules/record.ts";
import { isSettled } from "../rules/settlement.ts";
import { needsVerification } from "../rules/terms.ts";
import {
  findByReceipt,
  findByTask,
  findExecution,
  listExecutions,
  readOffer,
} from "../store/execution-rows.ts";
import { readReceipt, readReceipts, readSettlements } from "../store/receipt-rows.ts";
import { callerOf, callOptions, type ExecutionsContext } from "./context.ts";
import { requestExecution } from "./request.ts";
import { submitVerification } from "./submit-verification.ts";

/**
 * Number of poll intervals between two polls of a receipt watcher. Wake-ups announce new receipts, so polls may be
 * rare.
 */
const IDLE_POLLS = 10;

/** Handles the calls of ExecutionService, which buyers, sellers and verifiers make. */
export function executionService(executions: ExecutionsContext): ServiceImpl<typeof ExecutionService> {
  const { engine } = executions;
  const { store } = engine;

  const find = (caller: Caller, requestId: string) =>
    store.read(async (tx) => requireVisible(caller, await findExecution(tx, requestId), requestId));

  return {
    async requestExecution({ request }, context) {
      if (request === undefined) throw invalid("request", "is required");
      const { receipt, repeated } = await requestExecution(executions, request, context);
      return { receipt, repeatedRequest: repeated };
    },

    async getExecution(request, context) {
      const caller = await callerOf(executions, context);
      return store.read(async (tx) => {
        const { name } = request;
        const record = requireVisible(caller, await found(tx, name), name.value ?? "");
        const { createMs, endMs, approval, lastNumber, taskId, organization } = record;
        const { buyerPrincipal, authority } = record;
        const isBuyer = caller.mayActFor(buyerPrincipal);
        return {
          execution: {
            request: record.request,
            receipt: await readReceipt(tx, record.request.requestId, lastNumber),
            taskId,
            approval,
            organization,
            ...(isBuyer && {
              buyerPrincipal,
              authorityKnown: authority !== undefined,
              authorityRevocationIds: [...(authority ?? [])],
            }),
            lastSequence: BigInt(lastNumber),
            createTime: toTimestamp(createMs),
            ...(endMs !== undefined && { endTime: toTimestamp(endMs) }),
          },
        };
      });
    },

    listExecutions: (request, context) => listPage(executions, request, context),

    async listReceipts(request, context) {
      const { requestId } = request;
      const caller = await callerOf(executions, context);
      await find(caller, requestId);
      const page = pageOfList(
        await store.read((tx) => readReceipts(tx, requestId)),
        request,
        { list: "receipts", requestId },
        ({ sequence }) => String(sequence),
        (receipt) => bytesOf(NumberedReceiptSchema, receipt),
      );
      return { receipts: page.items, nextPageToken: page.nextPageToken };
    },

    async *watchReceipts(request, context) {
      const caller = await callerOf(executions, context);
      const record = await find(caller, request.requestId);
      requireNumber(record, request);
      if (request.sendStart) yield {};
      for await (const receipt of watch(executions, request, context)) yield { receipt };
    },

    async approveExecution({ requestId }, context) {
      const caller = await callerOf(executions, context);
      const record = await find(caller, requestId);
      requireBuyer(caller, record);
      return { receipt: await executions.approvals.approve(requestId) };
    },

    async cancelExecution({ requestId, reason }, context) {
      const caller = await callerOf(executions, context);
      const receipt = await store.write(async (tx) => {
        const record = requireVisible(caller, await findExecution(tx, requestId), requestId);
        requireBuyer(caller, record);
        if (record.status !== ExecutionStatus.CANCELLED) {
          if (isTerminal(record.status)) throw stateConflict(record, "the execution has ended");
          await engine.cancel(tx, record.taskId, reason);
        }
        const after = requireVisible(caller, await findExecution(tx, requestId), requestId);
        return readReceipt(tx, requestId, after.lastNumber);
      });
      return { receipt };
    },

    async submitVerification({ result }, context) {
      if (result === undefined) throw invalid("result", "is required");
      return submitVerification(executions, result, context);
    },

    async getCallbackKey(_request, context) {
      await executions.authority.identify(context);
      const { publicKey, keyId } = executions.callbackKey;
      return { publicKey, keyId };
    },

    async getSettlement({ requestId }, context) {
      const caller = await callerOf(executions, context);
      const record = await find(caller, requestId);
      return store.read(async (tx) => {
        if (record.taskId === "") return { settlement: create(SettlementSchema) };
        const { request, settlement: state, limit, finalAmount, captureId, verifyBy } = record;
        const settlement = create(SettlementSchema, {
          state,
          currency: request.payment?.currency ?? "",
          limitAmount: limit,
          ...(finalAmount !== undefined && { finalAmount }),
          paymentAuthorizationId: request.payment?.paymentAuthorizationId ?? "",
          paymentCaptureId: captureId,
          verificationRequired: needsVerification(request, await readOffer(tx, record)),
          ...(verifyBy !== undefined && { verificationExpireTime: toTimestamp(verifyBy) }),
          entries: await readSettlements(tx, requestId),
        });
        return { settlement };
      });
    },
  };
}

async function listPage(
  executions: ExecutionsContext,
  { party, pageSize: asked, pageToken }: ListExecutionsRequest,
  context: HandlerContext,
) {
  const identity = await executions.authority.identify(context);
  const id = party.value ?? "";
  const options = callOptions(executions, context);
  const { agent } = await executions.agents.getAgent({ agentId: id, viewer: identity.principal }, options);
  if (agent === undefined || !mayActFor(identity, agent.principal)) {
    const field = party.case === "buyerAgentId" ? "buyer_agent_id" : "seller_agent_id";
    throw new DeputeError(
      ErrorReason.CALLER_NOT_ALLOWED,
      `${field}: must be an agent of the caller, because only an agent itself may list its executions`,
      { metadata: { agent: id }, violations: [{ field, description: "is not an agent of the caller" }] },
    );
  }
  const filters = { list: "executions", party: party.case, id };
  const size = pageSize(asked);
  const [createMs, requestId] = decodePageToken(pageToken, filters) ?? [];
  const after =
    createMs === undefined ? undefined : { createMs: Number(createMs), requestId: String(requestId) };
  const column = party.case === "buyerAgentId" ? "buyer_id" : "seller_id";
  const rows = await executions.engine.store.read((tx) => listExecutions(tx, column, id, after, size + 1));
  const { items: page, more } = cutPage(rows, size, ({ receipt }) =>
    bytesOf(ExecutionReceiptSchema, receipt),
  );
  const last = page.at(-1);
  const isMore = more && last !== undefined;
  return {
    receipts: page.map(({ receipt }) => receipt),
    nextPageToken: isMore ? encodePageToken([last.createMs, last.requestId], filters) : "",
  };
}

/** @throws DeputeError INVALID_REQUEST for a cursor beyond the newest receipt */
function requireNumber({ lastNumber }: ExecutionRecord, { afterSequence }: WatchReceiptsRequest): void {
  if (afterSequence <= lastNumber) return;
  throw invalid("after_sequence", `is beyond the newest receipt, which is ${lastNumber}`);
}

async function* watch(
  { engine, timers, pollMs, stopping, wakeUps }: ExecutionsContext,
  { requestId, afterSequence }: WatchReceiptsRequest,
  context: Pick<HandlerContext, "signal">,
): AsyncGenerator<NumberedReceipt, void, undefined> {
  const { store } = engine;
  const link = linkSignals(context.signal, stopping);
  const afterNumber = Number(afterSequence);
  // Each read of `follow` below gets a batch and the number of the execution's last receipt in one transaction. The
  // stream ends after that receipt.
  const last = await store.read((tx) => lastOf(tx, requestId));
  if (last === afterNumber) return link.release();
  let end = last;
  try {
    yield* follow({
      read: (after, limit) =>
        store.read(async (tx) => {
          end = await lastOf(tx, requestId);
          return (await readReceipts(tx, requestId, after)).slice(0, limit);
        }),
      position: ({ sequence }) => Number(sequence),
      after: afterNumber,
      wake: (listener) => wakeUps.on(requestId, listener),
      pollMs: IDLE_POLLS * pollMs,
      timers,
      signal: link.signal,
      isLast: ({ sequence }) => Number(sequence) === end,
    });
  } finally {
    link.release();
  }
}

/**
 * Returns the number of an execution's last receipt; undefined while more receipts may come; 0 for an unknown
 * execution.
 */
async function lastOf(
  tx: Parameters<typeof findExecution>[0],
  requestId: string,
): Promise<number | undefined> {
  const record = await findExecution(tx, requestId);
  if (record === undefined) return 0;
  return isTerminal(record.status) && isSettled(record.settlement) ? record.lastNumber : undefined;
}

/** Finds an execution by one of its ids. */
function found(
  tx: ReadTx,
  { case: kind, value = "" }: GetExecutionRequest["name"],
): Promise<ExecutionRecord | undefined> {
  if (kind === "requestId") return findExecution(tx, value);
  return kind === "receiptId" ? findByReceipt(tx, value) : findByTask(tx, value);
}

/** @throws DeputeError EXECUTION_NOT_FOUND, also if the caller is neither the buyer nor the seller */
function requireVisible(caller: Caller, record: ExecutionRecord | undefined, name: string): ExecutionRecord {
  if (record === undefined) throw executionNotFound(name);
  if (caller.mayActFor(record.buyerPrincipal) || caller.mayActFor(record.sellerPrincipal)) return record;
  throw executionNotFound(name);
}

function requireBuyer(caller: Caller, { buyerPrincipal }: ExecutionRecord): void {
  if (caller.mayActFor(buyerPrincipal)) return;
  throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "only the buyer of the execution may do this");
}
