import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { DelegationStatus } from "@depute/contracts/delegateos/v0/delegation_pb";
import type { DelegationRecord } from "@depute/contracts/depute/tokens/v1/delegation_service_pb";
import {
  type CompleteDelegationRequest,
  type CompleteDelegationResponse,
  CompleteDelegationResponseSchema,
} from "@depute/contracts/depute/verifier/v1/attestation_service_pb";
import { DeputeError, ErrorReason, invalid } from "@depute/core";
import { attestedState } from "@depute/dct";
import { fromConnectError, type Identity, ownOptions } from "@depute/service";
import { type Completed, failureOf, serializeCheck } from "../completions.ts";
import { toDocument, toStored } from "../documents.ts";
import { readText } from "../json-value.ts";
import {
  type Evidence,
  type Finding,
  faultsOfCompletion,
  findingsOf,
} from "../rules/attestation-findings.ts";
import { validateAttestation } from "../rules/attestation-validation.ts";
import type { Attestation, TaskContract } from "../rules/documents.ts";
import { getAttestation } from "../store/attestations.ts";
import type { Verifier } from "../verifier.ts";
import { createYieldToEventLoop } from "../yield-to-event-loop.ts";
import { examineAttestation } from "./verify-attestation.ts";

/**
 * Ends a delegation by its delegatee's attestation (DelegateOS 9.4). The service writes nothing before all checks have
 * succeeded. Any caller may make this call, because the attestation's signature proves the delegatee.
 */
export async function completeDelegation(
  verifier: Verifier,
  { attestation: message, revocationId, output }: CompleteDelegationRequest,
  context: HandlerContext,
): Promise<CompleteDelegationResponse> {
  const { store, engine, clock, completions } = verifier;
  const identity = await verifier.authority.identify(context);
  if (message === undefined) throw invalid("attestation", "is needed");
  const yieldToEventLoop = createYieldToEventLoop(verifier);
  const attestation = toDocument("attestation", message);
  await yieldToEventLoop();
  validateAttestation(attestation, clock.now(), engine);
  if (attestation.type !== "completion") throw invalid("attestation.type", "must be completion");
  const signed = await toStored(engine, "attestation", attestation, clock.now(), yieldToEventLoop);
  await verifier.contracts.get(attestation.contractId);
  const options = ownOptions(context, clock);
  const outcome = { case: "attestation", value: message } as const;
  const key = { delegationId: attestation.delegationId, revocationId };
  const { delegation } = await verifier.delegations
    .finishDelegation({ ...key, outcome, validateOnly: true }, options)
    .catch((thrown: unknown) => {
      throw fromConnectError(thrown);
    });
  if (delegation === undefined) throw new Error("the tokens service returned no delegation");
  const isOver = delegation.status !== DelegationStatus.ACTIVE;
  if (isOver && delegation.attestationId !== attestation.id) throw hasEnded(delegation, attestation);
  const stored = await store.read((tx) => getAttestation(tx, attestation.id));
  if (isOver && stored?.digest === signed.digest) {
    return toResponse(attestation, { status: delegation.status, taskId: "" });
  }
  const sentOutput = readText(output, "", "output");
  const verification = await requireValidAttestation(verifier, attestation, sentOutput, identity, context);
  const row = {
    ...signed,
    revocationId: delegation.revocationId,
    output: attestation.result.output === undefined ? (sentOutput ?? null) : null,
    verification,
  };
  return toResponse(attestation, await completions.complete(row, attestation, options));
}

/**
 * Requires that an attestation is valid by DelegateOS 7.3.
 *
 * @returns the result of the contract's check; null if the attestation states a failure
 * @throws DeputeError VERIFICATION_FAILED, REVIEW_PENDING; the errors of examineAttestation
 */
async function requireValidAttestation(
  verifier: Verifier,
  attestation: Attestation,
  sentOutput: string | undefined,
  identity: Identity,
  context: HandlerContext,
): Promise<string | null> {
  const { contract } = await verifier.contracts.get(attestation.contractId);
  if (attestedState(attestation) === "failed") {
    requireNoFault(attestation, findingsOf(withoutOutput(attestation, contract)), false);
    return null;
  }
  const { findings, verification, reviewId } = await examineAttestation(
    verifier,
    attestation,
    sentOutput,
    identity,
    context,
  );
  if (reviewId !== "") {
    throw new DeputeError(
      ErrorReason.REVIEW_PENDING,
      "the contract's review is pending; call again after the decision",
      {
        metadata: { review: reviewId },
      },
    );
  }
  requireNoFault(attestation, findings, true);
  return verification === undefined ? null : serializeCheck(contract.verification.method, verification);
}

/**
 * Returns the evidence for an attestation that states a failure. Such an attestation has no output to verify, and
 * completeDelegation has verified the attestation's signature.
 */
function withoutOutput({ result }: Attestation, { constraints }: TaskContract): Evidence {
  const { maxBudgetMicrocents } = constraints;
  return {
    ...{ signatureFault: undefined, outputFault: undefined, schema: undefined, verification: undefined },
    ...{ costMicrocents: result.costMicrocents, maxBudgetMicrocents },
  };
}

/**
 * Requires that none of the findings prevents the end of the delegation.
 *
 * @throws DeputeError VERIFICATION_FAILED
 */
function requireNoFault({ id }: Attestation, findings: readonly Finding[], hasSucceeded: boolean): void {
  const faults = faultsOfCompletion(findings, hasSucceeded);
  if (faults === "") return;
  throw new DeputeError(ErrorReason.VERIFICATION_FAILED, `the attestation is not valid: ${faults}`, {
    metadata: { attestation: id },
  });
}

function hasEnded({ id, status }: DelegationRecord, { result }: Attestation): DeputeError {
  const state = status === DelegationStatus.COMPLETED ? "completed" : "failed";
  return new DeputeError(
    ErrorReason.DELEGATION_STATE_CONFLICT,
    `another attestation has ended the delegation: it is ${state}`,
    { metadata: { delegation: id, from: state, to: result.success ? "completed" : "failed" } },
  );
}

function toResponse(attestation: Attestation, { status, taskId }: Completed): CompleteDelegationResponse {
  return create(CompleteDelegationResponseSchema, {
    status,
    taskId,
    details: detailsOf(attestation, status),
  });
}

function detailsOf(attestation: Attestation, status: DelegationStatus): string {
  switch (status) {
    case DelegationStatus.COMPLETED:
      return "";
    case DelegationStatus.FAILED:
      return failureOf(attestation);
    case DelegationStatus.ACTIVE:
      return "the result is held until the delegate's overseer decides";
    default:
      return "the delegation was revoked while it was being completed";
  }
}
