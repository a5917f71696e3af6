import type { CallOptions, HandlerContext } from "@connectrpc/connect";
import {
  Decision,
  type VerificationResult,
} from "@depute/contracts/agenta/delegation/v0/verification_result_pb";
import { AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import { mayActFor } from "@depute/service";
import { conclude, findJudged, type Judged, mayBeTold, tell } from "../outbox/verifications.ts";
import { stateConflict } from "../rules/errors.ts";
import { checkResultForms } from "../rules/forms.ts";
import { isSettled } from "../rules/settlement.ts";
import { needsVerification } from "../rules/terms.ts";
import { deleteVerification, insertVerification } from "../store/outbox-rows.ts";
import { callOptions, type ExecutionsContext } from "./context.ts";

/** Milliseconds after which the outbox sends a verification result again if the verifier service has not answered. */
const RETRY_MS = 60_000;

/** Records a verification result. If the verifier service accepts it, the result settles the payment. */
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

/**
 * Returns the reason to refuse a verification result; undefined for none. The service refuses a result after the time
 * for verification, and after a settlement without the required verification.
 */
async function whyOver(
  { clock, results }: ExecutionsContext,
  { record, offer, receipt: { receiptId } }: Judged,
  options: CallOptions,
): Promise<string | undefined> {
  const { verifyBy, settlement, request } = record;
  const tooLate =
    "the time for verification has passed, and the payment goes back to the buyer: request the work again";
  if (!isSettled(settlement)) {
    return verifyBy !== undefined && verifyBy <= clock.now() ? tooLate : undefined;
  }
  if (!needsVerification(request, offer)) return undefined;
  // If the verifier service has a decided result, that result has already settled the payment. This call may be a retry
  // of the call with that result, so the service does not refuse it.
  for (let pageToken = ""; ; ) {
    const page = await results.listVerificationResults({ receiptId, pageToken }, options);
    if (page.results.some(({ decision }) => decision !== Decision.INCONCLUSIVE)) return undefined;
    pageToken = page.nextPageToken;
    if (pageToken === "") return tooLate;
  }
}

/**
 * Requires that the verifier is an agent of the caller, and that the result names that agent's registered organization.
 */
async function identifyVerifier(
  executions: ExecutionsContext,
  { verifierAgent }: VerificationResult,
  context: HandlerContext,
): Promise<void> {
  const identity = await executions.authority.identify(context);
  const { agentId: id = "", organizationId = "" } = verifierAgent ?? {};
  const viewer = identity.principal;
  const { agent } = await executions.agents.getAgent(
    { agentId: id, viewer },
    callOptions(executions, context),
  );
  const isOwn = agent?.status === AgentStatus.ACTIVE && mayActFor(identity, agent.principal);
  if (isOwn && agent.organization === organizationId) return;
  const field = isOwn ? "result.verifier_agent.organization_id" : "result.verifier_agent.agent_id";
  const description = isOwn
    ? "must be the verifier's registered organization"
    : "is not an agent of the caller";
  throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, `${field}: ${description}`, {
    metadata: { agent: id },
    violations: [{ field, description }],
  });
}
