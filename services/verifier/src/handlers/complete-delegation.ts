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
import { createBreath } from "../breath.ts";
import { type Completed, failureOf, keptCheck } from "../completions.ts";
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
import { examine } from "./verify-attestation.ts";

/**
 * Ends a delegation by its delegatee's attestation (DelegateOS 9.4). Everything is checked before anything is written; who
 * calls does not matter, since the signature says whose word it is.
 */
export async function completeDelegation(
  verifier: Verifier,
  { attestation: message, revocationId, output }: CompleteDelegationRequest,
  context: HandlerContext,
): Promise<CompleteDelegationResponse> {
  const { store, engine, clock, completions } = verifier;
  const identity = await verifier.authority.identify(context);
  if (message === undefined) throw invalid("attestation", "is needed");
  const breathe = createBreath();
  const attestation = toDocument("attestation", message);
  await breathe();
  validateAttestation(attestation, clock.now(), engine);
  if (attestation.type !== "completion") throw invalid("attestation.type", "is not a completion");
  const wanted = await toStored(engine, "attestation", attestation, clock.now(), breathe);
  await verifier.contracts.get(attestation.contractId);
  const options = ownOptions(context, clock);
  const outcome = { case: "attestation", value: message } as const;
  const key = { delegationId: attestation.delegationId, revocationId };
  const { delegation } = await verifier.delegations
    .finishDelegation({ ...key, outcome, validateOnly: true }, options)
    .catch((thrown: unknown) => {
      throw fromConnectError(thrown);
    });
  if (delegation === undefined) throw new Error("the tokens service names no delegation");
  const isOver = delegation.status !== DelegationStatus.ACTIVE;
  if (isOver && delegation.attestationId !== attestation.id) throw hasEnded(delegation, attestation);
  const stored = await store.read((tx) => getAttestation(tx, attestation.id));
  if (isOver && stored?.digest === wanted.digest) {
    return answer(attestation, { status: delegation.status, taskId: "" });
  }
  const given = readText(output, "", "output");
  const verification = await requireSound(verifier, attestation, given, identity, context);
  const row = {
    ...wanted,
    revocationId: delegation.revocationId,
    output: attestation.result.output === undefined ? (given ?? null) : null,
    verification,
  };
  return answer(attestation, await completions.complete(row, attestation, options));
}

/**
 * Checks an attestation as DelegateOS 7.3 says.
 *
 * @returns the contract's check as it is kept; null for a statement of failure
 * @throws DeputeError VERIFICATION_FAILED, REVIEW_PENDING
 */
async function requireSound(
  verifier: Verifier,
  attestation: Attestation,
  given: string | undefined,
  identity: Identity,
  context: HandlerContext,
): Promise<string | null> {
  const { contract } = await verifier.contracts.get(attestation.contractId);
  if (attestedState(attestation) === "failed") {
    requireNoFault(attestation, findingsOf(withoutOutput(attestation, contract)), false);
    return null;
  }
  const { findings, verification, reviewId } = await examine(verifier, attestation, given, identity, context);
  if (reviewId !== "") {
    throw new DeputeError(
      ErrorReason.REVIEW_PENDING,
      "a person decides about the contract first; call again then",
      {
        metadata: { review: reviewId },
      },
    );
  }
  requireNoFault(attestation, findings, true);
  return verification === undefined ? null : keptCheck(contract.verification.method, verification);
}

/** What is known of a statement of failure: its signature held when it was read, and there is no output to judge. */
function withoutOutput({ result }: Attestation, { constraints }: TaskContract): Evidence {
  const { maxBudgetMicrocents } = constraints;
  return {
    ...{ signatureFault: undefined, outputFault: undefined, schema: undefined, verification: undefined },
    ...{ costMicrocents: result.costMicrocents, maxBudgetMicrocents },
  };
}

/** @throws DeputeError VERIFICATION_FAILED */
function requireNoFault({ id }: Attestation, findings: readonly Finding[], hasSucceeded: boolean): void {
  const faults = faultsOfCompletion(findings, hasSucceeded);
  if (faults === "") return;
  throw new DeputeError(ErrorReason.VERIFICATION_FAILED, `the attestation does not hold: ${faults}`, {
    metadata: { attestation: id },
  });
}

function hasEnded({ id, status }: DelegationRecord, { result }: Attestation): DeputeError {
  const state = status === DelegationStatus.COMPLETED ? "completed" : "failed";
  return new DeputeError(
    ErrorReason.DELEGATION_STATE_CONFLICT,
    `the delegation is ${state}, and not by this attestation`,
    { metadata: { delegation: id, from: state, to: result.success ? "completed" : "failed" } },
  );
}

function answer(attestation: Attestation, { status, taskId }: Completed): CompleteDelegationResponse {
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
