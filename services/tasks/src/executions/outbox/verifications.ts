import { create } from "@bufbuild/protobuf";
import type { CallOptions, Client } from "@connectrpc/connect";
import {
  type ExecutionReceipt,
  ExecutionStatus,
} from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import { type Offer, VerificationMode } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import type { VerificationResult } from "@depute/contracts/agenta/delegation/v0/verification_result_pb";
import {
  type ResultService,
  SubmitVerificationResultRequestSchema,
} from "@depute/contracts/depute/verifier/v1/result_service_pb";
import { type Clock, invalid, Status, statusOf, type Timers } from "@depute/core";
import { fromConnectError, type Logger, Outbox, optionsForOwner, ownHeaders } from "@depute/service";
import type { WriteTx } from "@depute/store";
import type { TaskEngine } from "../../core/index.ts";
import type { BookListener, ExecutionBook } from "../book/book.ts";
import { executionNotFound, stateConflict } from "../rules/errors.ts";
import { statusWord } from "../rules/machine.ts";
import type { ExecutionRecord } from "../rules/record.ts";
import { requiredArtifacts } from "../rules/terms.ts";
import { acceptableVerifiers } from "../rules/verifiers.ts";
import { findExecution, readOffer } from "../store/execution-rows.ts";
import {
  deleteVerification,
  insertVerification,
  type VerificationRow,
  verificationsToTell,
} from "../store/outbox-rows.ts";
import { readReceipt, readReceipts } from "../store/receipt-rows.ts";

/** Timeout of the calls that the outbox makes to the verifier service, in milliseconds. */
const TIMEOUT_MS = 10_000;

/** The execution and the receipt that a verification result is about. */
export interface Judged {
  readonly record: ExecutionRecord;
  readonly offer: Offer;
  /** The receipt of the completed work. */
  readonly receipt: ExecutionReceipt;
}

/** The dependencies of verifications. */
export interface VerificationOptions {
  readonly engine: Pick<TaskEngine, "store" | "lease">;
  readonly clock: Clock;
  readonly results: Client<typeof ResultService>;
  readonly book: ExecutionBook;
}

/** @throws DeputeError EXECUTION_NOT_FOUND, EXECUTION_STATE_CONFLICT, INVALID_REQUEST */
export async function findJudged(
  tx: Parameters<typeof findExecution>[0],
  result: VerificationResult,
): Promise<Judged> {
  const { requestId, receiptId, executionId } = result;
  const record = await findExecution(tx, requestId);
  // The caller need not be a party to the execution. Any caller that knows the receipt's id may submit a result. The
  // verifier service checks whether the result's verifier is acceptable.
  const receipts = record === undefined ? [] : await readReceipts(tx, requestId);
  const found = receipts.find(({ receipt }) => receipt?.receiptId === receiptId);
  if (record === undefined || found?.receipt === undefined) throw executionNotFound(requestId);
  if (found.settles) {
    throw stateConflict(
      record,
      "the receipt settles the payment, and no verification can change a settled payment: read the payment with GetSettlement",
    );
  }
  if (found.receipt.status !== ExecutionStatus.COMPLETED) {
    throw stateConflict(
      record,
      `the receipt has the status ${statusWord(found.receipt.status)}: verify the completed receipt, which ListReceipts returns`,
    );
  }
  if (executionId !== undefined && executionId !== record.taskId) {
    throw invalid("result.execution_id", "must be the execution of the receipt");
  }
  return { record, offer: await readOffer(tx, record), receipt: found.receipt };
}

/** Sends a verification result to the verifier service, with the terms that the request and the offer fix. */
export async function tell(
  { results }: VerificationOptions,
  { record, offer, receipt }: Judged,
  result: VerificationResult,
  options: CallOptions,
): Promise<void> {
  const { request, sellerOrganization } = record;
  const buyer = request.buyerAgent;
  const submission = create(SubmitVerificationResultRequestSchema, {
    result,
    terms: {
      mode: offer.verificationPolicy?.mode ?? VerificationMode.UNSPECIFIED,
      seller: { agentId: request.sellerAgentId, organizationId: sellerOrganization },
      buyer: { agentId: buyer?.agentId ?? "", organizationId: buyer?.organizationId ?? "" },
      requiredArtifacts: requiredArtifacts(request, offer),
      minimumScore: request.verificationRequirements?.minimumScore ?? 0,
      acceptableVerifiers: acceptableVerifiers(request) ?? [],
    },
    artifacts: receipt.artifacts?.values ?? [],
  });
  await results.submitVerificationResult(submission, optionsForOwner(options, record));
}

/**
 * Settles the payment of an execution by an accepted verification result.
 *
 * @returns the newest receipt
 */
export function conclude(
  { engine, book }: VerificationOptions,
  result: VerificationResult,
): Promise<ExecutionReceipt> {
  return engine.store.write(async (tx) => {
    await deleteVerification(tx, result);
    const record = await findExecution(tx, result.requestId);
    if (record === undefined) throw executionNotFound(result.requestId);
    const after = await book.settleBy(tx, record, result);
    return readReceipt(tx, result.requestId, after.lastNumber);
  });
}

/** Whether the decision of the verifier service is unknown after this error. The outbox then sends the result again. */
export function mayBeTold(error: unknown): boolean {
  const status = statusOf(fromConnectError(error).reason);
  return status === Status.UNAVAILABLE || status === Status.DEADLINE_EXCEEDED || status === Status.INTERNAL;
}

/**
 * The outbox of verification results that the verifier service has not decided. These are sellers' results on their own
 * work, and results whose response was lost.
 */
export function verificationOutbox(
  executions: VerificationOptions,
  timers: Timers,
  log: Logger,
): { listener: BookListener; outbox: Outbox<VerificationRow> } {
  const { clock, engine } = executions;
  const { store } = engine;
  const outbox = new Outbox<VerificationRow>({
    timers,
    log,
    lease: engine.lease("verifications"),
    failureMessage: "a verification of an execution cannot be sent to the verifier",
    first: (limit) => store.read((tx) => verificationsToTell(tx, clock.now(), limit)),
    drop: async () => {},
    async tell({ verificationId, result }, signal) {
      try {
        const judged = await store.read((tx) => findJudged(tx, result));
        await tell(executions, judged, result, { headers: ownHeaders(""), signal, timeoutMs: TIMEOUT_MS });
      } catch (error) {
        if (mayBeTold(error)) throw error;
        log.warn(
          { err: error, verification: verificationId },
          "the verifier refused a verification of an execution",
        );
        await store.write((tx) => deleteVerification(tx, result));
        return;
      }
      await conclude(executions, result);
    },
  });
  const listener: BookListener = {
    issued: async () => {},
    async attested(tx: WriteTx, _record, result) {
      await insertVerification(tx, result, 0);
      tx.afterCommit(() => outbox.wake());
    },
  };
  return { listener, outbox };
}
