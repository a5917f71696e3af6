import { create } from "@bufbuild/protobuf";
import type { CallOptions, HandlerContext } from "@connectrpc/connect";
import {
  type ExecutionReceipt,
  ExecutionStatus,
} from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import { type Offer, VerificationMode } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import {
  Decision,
  type VerificationResult,
} from "@depute/contracts/agenta/delegation/v0/verification_result_pb";
import { AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import { SubmitVerificationResultRequestSchema } from "@depute/contracts/depute/verifier/v1/result_service_pb";
import { DeputeError, ErrorReason, invalid, Status, statusOf } from "@depute/core";
import { fromConnectError, type Logger, mayActFor, Outbox, ownHeaders } from "@depute/service";
import type { WriteTx } from "@depute/store";
import type { Errands } from "../book/book.ts";
import { callOptions, type ExecutionsContext } from "../handlers/context.ts";
import { executionNotFound, stateConflict } from "../rules/errors.ts";
import { checkResultForms } from "../rules/forms.ts";
import { statusWord } from "../rules/machine.ts";
import type { ExecutionRecord } from "../rules/record.ts";
import { isSettled } from "../rules/settlement.ts";
import { needsVerification, requiredArtifacts } from "../rules/terms.ts";
import { acceptableVerifiers } from "../rules/verifiers.ts";
import {
  deleteVerification,
  insertVerification,
  type VerificationRow,
  verificationsToTell,
} from "../store/errand-rows.ts";
import { findExecution, readOffer } from "../store/execution-rows.ts";
import { readReceipt, readReceipts } from "../store/receipt-rows.ts";

/** When a judgement of which nothing was heard is told again, milliseconds. */
const RETRY_MS = 60_000;
/** How long the verifier has for an answer to the platform itself, milliseconds. */
const TIMEOUT_MS = 10_000;

/** What a judgement is about. */
interface Judged {
  readonly record: ExecutionRecord;
  readonly offer: Offer;
  /** The receipt of the completed work. */
  readonly receipt: ExecutionReceipt;
}

/** Takes a verifier's judgement: the verifier service says whether it counts, and what counts settles the payment. */
export async function submitVerification(
  executions: ExecutionsContext,
  result: VerificationResult,
  context: HandlerContext,
) {
  const { engine, clock } = executions;
  const { store } = engine;
  const options = callOptions(executions, context);
  checkResultForms(result);
  await identifyVerifier(executions, result, context);
  const judged = await store.read((tx) => findJudged(tx, result));
  const over = await whyOver(executions, judged, options);
  if (over !== undefined) throw stateConflict(judged.record, over);
  await store.write((tx) => insertVerification(tx, result, clock.now() + RETRY_MS));
  try {
    await tell(executions, judged, result, options);
  } catch (error) {
    if (!mayBeTold(error)) await store.write((tx) => deleteVerification(tx, result));
    throw error;
  }
  return { result, receipt: await conclude(executions, result) };
}

/** Why there is nothing more to decide, because the payment was settled by time, or is about to be; else undefined. */
async function whyOver(
  { clock, results }: ExecutionsContext,
  { record, offer, receipt: { receiptId } }: Judged,
  options: CallOptions,
): Promise<string | undefined> {
  const { verifyBy, settlement, request } = record;
  const tooLate = "the time for verification is over and the payment goes back: request the work anew";
  if (!isSettled(settlement)) {
    return verifyBy !== undefined && verifyBy <= clock.now() ? tooLate : undefined;
  }
  if (!needsVerification(request, offer)) return undefined;
  // What was settled by a judgement is the verifier service's to say: it may be this very one again.
  for (let pageToken = ""; ; ) {
    const page = await results.listVerificationResults({ receiptId, pageToken }, options);
    if (page.results.some(({ decision }) => decision !== Decision.INCONCLUSIVE)) return undefined;
    pageToken = page.nextPageToken;
    if (pageToken === "") return tooLate;
  }
}

/** The verifier is an agent of the caller's, of the organization that it is registered with. */
async function identifyVerifier(
  executions: ExecutionsContext,
  { verifierAgent }: VerificationResult,
  context: HandlerContext,
): Promise<void> {
  const identity = await executions.authority.identify(context);
  const { agentId: id = "", organizationId = "" } = verifierAgent ?? {};
  const viewer = identity.principal;
  const { agent } = await executions.agents.getAgent({ id, viewer }, callOptions(executions, context));
  const isOwn = agent?.status === AgentStatus.ACTIVE && mayActFor(identity, agent.principal);
  if (isOwn && agent.organization === organizationId) return;
  const field = isOwn ? "result.verifier_agent.organization_id" : "result.verifier_agent.agent_id";
  const description = isOwn ? "is not where the verifier is registered" : "is no agent of the caller's";
  throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, `${field}: ${description}`, {
    metadata: { agent: id },
    violations: [{ field, description }],
  });
}

/** @throws DeputeError EXECUTION_NOT_FOUND, EXECUTION_STATE_CONFLICT, INVALID_REQUEST */
async function findJudged(
  tx: Parameters<typeof findExecution>[0],
  result: VerificationResult,
): Promise<Judged> {
  const { requestId, receiptId, executionId } = result;
  const record = await findExecution(tx, requestId);
  // Who judges need not be a party: that it has the receipt is what entitles it to know of the execution.
  const receipts = record === undefined ? [] : await readReceipts(tx, requestId);
  const found = receipts.find(({ receipt }) => receipt?.receiptId === receiptId);
  if (record === undefined || found?.receipt === undefined) throw executionNotFound(requestId);
  if (found.settles) {
    throw stateConflict(
      record,
      "the receipt settles the payment, which no verification changes any more: read it by GetSettlement",
    );
  }
  if (found.receipt.status !== ExecutionStatus.COMPLETED) {
    throw stateConflict(
      record,
      `the receipt is ${statusWord(found.receipt.status)}: verify the completed one, which ListReceipts has`,
    );
  }
  if (executionId !== undefined && executionId !== record.taskId) {
    throw invalid("result.execution_id", "is another execution's");
  }
  return { record, offer: await readOffer(tx, record), receipt: found.receipt };
}

/** Tells the verifier service of a judgement, with what the parties agreed on. */
async function tell(
  { results }: ExecutionsContext,
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
  await results.submitVerificationResult(submission, options);
}

/** Settles the payment by a judgement that counts. @returns the newest receipt */
function conclude(
  { engine, book }: ExecutionsContext,
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

/** Whether a refusal says nothing of what becomes of a judgement: it is told again. */
function mayBeTold(error: unknown): boolean {
  const status = statusOf(fromConnectError(error).reason);
  return status === Status.UNAVAILABLE || status === Status.DEADLINE_EXCEEDED || status === Status.INTERNAL;
}

/** Judgements that are still to be told: those of sellers on their own work, and those whose answer was lost. */
export function verificationErrands(
  executions: ExecutionsContext,
  log: Logger,
): { errands: Errands; outbox: Outbox<VerificationRow> } {
  const { clock, timers, engine } = executions;
  const { store } = engine;
  const outbox = new Outbox<VerificationRow>({
    timers,
    log,
    what: "a verification of an execution cannot be told to the verifier",
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
          "a verification of an execution does not count",
        );
        await store.write((tx) => deleteVerification(tx, result));
        return;
      }
      await conclude(executions, result);
    },
  });
  const errands: Errands = {
    issued: async () => {},
    async attested(tx: WriteTx, _record, result) {
      await insertVerification(tx, result, 0);
      tx.afterCommit(() => outbox.wake());
    },
  };
  return { errands, outbox };
}
