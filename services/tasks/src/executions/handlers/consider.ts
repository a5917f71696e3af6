import type { CallOptions } from "@connectrpc/connect";
import { ErrorCode, type ExecutionError } from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import type { ExecutionRequest } from "@depute/contracts/agenta/delegation/v0/execution_request_pb";
import { type Offer, VerificationMode } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import { type Agent, AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import { ErrorReason } from "@depute/core";
import { reasonOf } from "@depute/service";
import { offerRefusal } from "../rules/admission.ts";
import { draftOf } from "../rules/draft.ts";
import { failed } from "../rules/refusal.ts";
import { acceptableVerifiers, verifiersRefusal } from "../rules/verifiers.ts";
import type { Acceptable, Asked } from "./asked.ts";
import type { ExecutionsContext } from "./context.ts";
import { lookUpOffer, resolveWork } from "./look-up.ts";

/** Checks a request by calls to other services. Returns the facts for its acceptance, or the refusal. */
export async function consider(
  executions: ExecutionsContext,
  asked: Asked,
  options: CallOptions,
): Promise<Acceptable | ExecutionError> {
  const { clock, engine } = executions;
  const { request, buyer, principal, identity } = asked;
  if (request.buyerAgent?.organizationId !== buyer.organization) {
    return failed(ErrorCode.BUYER_NOT_ALLOWED, "the buyer is registered with another organization", {
      path: "/buyer_agent/organization_id",
    });
  }
  const found = await lookUpOffer(executions, request, identity.principal, options);
  const refusal = offerRefusal(request, found, clock.now());
  if (refusal !== undefined) return refusal;
  if (found.kind !== "offer") throw new Error("an offer that does not exist was not refused");
  const { offer } = found.facts;
  const seller = await findAgent(executions, request.sellerAgentId, "", options);
  if (seller?.status !== AgentStatus.ACTIVE) {
    return failed(ErrorCode.OFFER_NOT_FOUND, "the seller is not an active agent");
  }
  const unnamed = await verifiersFault(executions, request, offer, options);
  if (unnamed !== undefined) return unnamed;
  const unfit = await inputRefusal(executions, request, offer, options);
  if (unfit !== undefined) return unfit;
  const target = await resolveWork(executions, offer, seller, options);
  const draft = draftOf(request, offer, clock.now());
  try {
    const { admission, ...rest } = await engine.admit(
      { draft, delegator: principal, target: { ...target, capability: undefined } },
      options,
    );
    const { capability } = target;
    const more = { executionRequestId: request.requestId };
    const own = capability && { capabilityId: capability.id, capabilityHash: capability.h };
    return { offer, seller, admitted: { ...rest, admission: { ...admission, ...own, ...more } } };
  } catch (error) {
    const reason = reasonOf(error);
    // CALLER_NOT_ALLOWED means that the buyer's manifest does not allow this seller. AGENT_NOT_FOUND means that the
    // registry did not find the seller's overseer.
    if (reason === ErrorReason.CALLER_NOT_ALLOWED) {
      return failed(
        ErrorCode.BUYER_NOT_ALLOWED,
        "the buyer's manifest does not allow a delegation to the seller",
      );
    }
    if (reason === ErrorReason.AGENT_NOT_FOUND) {
      return failed("capacity_unavailable", "the seller's overseer is not a registered agent");
    }
    throw error;
  }
}

/**
 * Returns why the service refuses the third-party verifiers that the request names. Returns undefined if the service
 * accepts these verifiers, or if the buyer or the seller verifies.
 */
async function verifiersFault(
  { organizations }: ExecutionsContext,
  request: ExecutionRequest,
  offer: Offer,
  options: CallOptions,
): Promise<ExecutionError | undefined> {
  if (offer.verificationPolicy?.mode !== VerificationMode.THIRD_PARTY_VERIFIED) return undefined;
  const named = acceptableVerifiers(request);
  if (named?.length === 0) return undefined;
  const agentIds = [request.buyerAgent?.agentId ?? "", request.sellerAgentId, ...(named ?? [])];
  const { affiliations } = await organizations.batchGetAffiliations({ agentIds }, options);
  return verifiersRefusal(request, named, (id) => affiliations.find(({ agentId }) => agentId === id));
}

/**
 * Returns the error for an input that does not fit the offer's schema; undefined if the input fits. The
 * verifier service checks the input, because only that service runs users' schemas.
 */
async function inputRefusal(
  { verification }: ExecutionsContext,
  request: ExecutionRequest,
  { inputSchema: schema }: Offer,
  options: CallOptions,
): Promise<ExecutionError | undefined> {
  if (schema === undefined) return undefined;
  const mode = "schema_validation_failure";
  const valueJson = JSON.stringify(request.input ?? {});
  try {
    const { violations } = await verification.checkSchema({ schema, valueJson }, options);
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

/** Returns an agent as a viewer sees it; undefined if the agent is unknown or hidden from the viewer. */
export async function findAgent(
  { agents }: Pick<ExecutionsContext, "agents">,
  id: string,
  viewer: string,
  options: CallOptions,
): Promise<Agent | undefined> {
  try {
    return (await agents.getAgent({ agentId: id, viewer }, options)).agent;
  } catch (error) {
    if (reasonOf(error) === ErrorReason.AGENT_NOT_FOUND) return undefined;
    throw error;
  }
}
