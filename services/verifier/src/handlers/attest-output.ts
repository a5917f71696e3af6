import { create } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import type {
  AttestOutputRequest,
  AttestOutputResponse,
} from "@depute/contracts/depute/verifier/v1/attestation_service_pb";
import { AttestOutputResponseSchema } from "@depute/contracts/depute/verifier/v1/attestation_service_pb";
import { canonicalBytes, DeputeError, ErrorReason, encodeBase64Url, formatTime, invalid } from "@depute/core";
import { newId, signObject } from "@depute/dct";
import { mayActFor } from "@depute/service";
import type { RequestKey } from "@depute/store";
import { attestationNotFound, canonicalOutput, readAttestation, storeAttestation } from "../attestations.ts";
import type { KnownContract } from "../contract-book.ts";
import { toMessage, toStored } from "../documents.ts";
import { requireText } from "../json-value.ts";
import { checkCallerOf, payingTokenOf, verifyByContract } from "../output-verification.ts";
import type { CheckResult } from "../rules/check-result.ts";
import type { Attestation } from "../rules/documents.ts";
import { firstMissing } from "../store/attestations.ts";
import { findRequest, insertRequest } from "../store/requests.ts";
import { pushOutcome } from "../store/trust-outbox.ts";
import type { Verifier } from "../verifier.ts";
import { createYieldToEventLoop } from "../yield-to-event-loop.ts";

/**
 * Verifies an output and signs the result, whether the output passed or not. The attestation contains only the output's
 * hash.
 */
export async function attestOutput(
  verifier: Verifier,
  request: AttestOutputRequest,
  context: HandlerContext,
): Promise<AttestOutputResponse> {
  const { store } = verifier;
  const identity = await verifier.authority.identify(context);
  const output = requireText(request.output, request.outputJson, "output");
  const children = request.childAttestations;
  if (new Set(children).size !== children.length) throw invalid("child_attestations", "contains an id twice");
  const by = { identity, signal: context.signal };
  const { hash } = await canonicalOutput(verifier, output, checkCallerOf(by));
  const key: RequestKey = {
    caller: identity.principal,
    requestId: request.requestId,
    digest: digestOf(verifier, request, hash),
  };

  const before = await store.read((tx) => findRequest(tx, key));
  if (before !== undefined) return toResponse((await readAttestation(store, before)).attestation);
  const knownContract = await verifier.contracts.get(request.contractId);
  const missing = await store.read((tx) => firstMissing(tx, children));
  if (missing !== undefined) throw attestationNotFound(missing);

  const payingToken = payingTokenOf(request.payingToken, context);
  const subject = { knownContract, output, outputHash: hash, payingToken, ...by };
  const { result, reviewId } = await verifyByContract(verifier, subject);
  if (result === undefined) {
    throw new DeputeError(
      ErrorReason.REVIEW_PENDING,
      "the review is pending; call again after the decision",
      {
        metadata: { review: reviewId },
      },
    );
  }
  const attestation = sign(verifier, request, knownContract, hash, result);
  const signed = await toStored(
    verifier.engine,
    "attestation",
    attestation,
    verifier.clock.now(),
    createYieldToEventLoop(verifier),
  );
  const stored = await store.write(async (tx) => {
    const meanwhile = await findRequest(tx, key);
    if (meanwhile !== undefined) return meanwhile;
    await storeAttestation(tx, verifier.log, signed, attestation);
    await insertRequest(tx, key, signed.id, signed.storeTime);
    // The outcome is evidence of trust only if the contract's issuer, or the platform, made this call. So a worker
    // cannot raise its own score.
    if (mayActFor(identity, knownContract.contract.issuer)) {
      await pushOutcome(tx, signed.id);
      tx.afterCommit(() => verifier.trust.wake());
    }
    return signed.id;
  });
  return toResponse(
    stored === attestation.id ? attestation : (await readAttestation(store, stored)).attestation,
  );
}

function sign(
  { engine, keypair, clock }: Verifier,
  request: AttestOutputRequest,
  { contract }: KnownContract,
  hash: string,
  result: CheckResult,
): Attestation {
  return signObject(
    engine,
    "attestation",
    {
      id: newId("att"),
      version: "0.1",
      contractId: contract.id,
      delegationId: request.delegationId,
      principal: keypair.principal.id,
      createdAt: formatTime(clock.now()),
      type: "delegation_verification",
      result: {
        success: result.passed,
        outputHash: hash,
        costMicrocents: Number(request.costMicrocents),
        durationMs: durationOf(request),
        verificationOutcome: { method: contract.verification.method, ...result },
      },
      childAttestations: request.childAttestations,
    },
    keypair,
  );
}

/** Returns the duration of the work in milliseconds (DelegateOS 7.1). */
function durationOf({ duration }: AttestOutputRequest): number {
  return duration === undefined ? 0 : durationMs(duration);
}

/**
 * Returns the digest of the request without its request id. The digest covers the output's hash in place of the output.
 */
function digestOf({ engine }: Verifier, request: AttestOutputRequest, hash: string): string {
  const { contractId, delegationId, costMicrocents, childAttestations } = request;
  const body = [
    contractId,
    delegationId,
    String(costMicrocents),
    String(durationOf(request)),
    childAttestations,
    hash,
  ];
  return encodeBase64Url(engine.blake2b256(canonicalBytes(body)));
}

function toResponse(attestation: Attestation): AttestOutputResponse {
  return create(AttestOutputResponseSchema, { attestation: toMessage("attestation", attestation) });
}
