import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import type {
  AttestOutputRequest,
  AttestOutputResponse,
} from "@depute/contracts/depute/verifier/v1/attestation_service_pb";
import { AttestOutputResponseSchema } from "@depute/contracts/depute/verifier/v1/attestation_service_pb";
import { canonicalBytes, DeputeError, ErrorReason, encodeBase64Url, formatTime, invalid } from "@depute/core";
import { newId, signObject } from "@depute/dct";
import { mayActFor } from "@depute/service";
import { attestationNotFound, canonicalOutput, readAttestation, saveAttestation } from "../attestations.ts";
import type { KnownContract } from "../contract-book.ts";
import { toMessage, toStored } from "../documents.ts";
import { needText } from "../json-value.ts";
import { byOf, judgeOutput, payingTokenOf } from "../judging.ts";
import type { CheckResult } from "../rules/check-result.ts";
import type { Attestation } from "../rules/documents.ts";
import { firstMissing } from "../store/attestations.ts";
import { answeredBefore, type RequestKey, rememberAnswer } from "../store/requests.ts";
import { pushOutcome } from "../store/trust-outbox.ts";
import type { Verifier } from "../verifier.ts";

/**
 * Checks an output and signs what came out, passed or not. The attestation holds the output's hash, not the output:
 * who has the output can check the statement, and who has only the statement learns nothing of the output.
 */
export async function attestOutput(
  verifier: Verifier,
  request: AttestOutputRequest,
  context: HandlerContext,
): Promise<AttestOutputResponse> {
  const { store } = verifier;
  const identity = await verifier.authority.identify(context);
  const output = needText(request.output, request.outputJson, "output");
  const children = request.childAttestations;
  if (new Set(children).size !== children.length) throw invalid("child_attestations", "names one twice");
  const by = { identity, signal: context.signal };
  const { hash } = await canonicalOutput(verifier, output, byOf(by));
  const key: RequestKey = {
    caller: identity.principal,
    requestId: request.requestId,
    digest: digestOf(verifier, request, hash),
  };

  const before = await store.read((tx) => answeredBefore(tx, key));
  if (before !== undefined) return answer((await readAttestation(store, before)).attestation);
  const known = await verifier.contracts.get(request.contractId);
  const missing = await store.read((tx) => firstMissing(tx, children));
  if (missing !== undefined) throw attestationNotFound(missing);

  const payingToken = payingTokenOf(request.payingToken, context);
  const subject = { known, output: output, outputHash: hash, payingToken, ...by };
  const { result, reviewId } = await judgeOutput(verifier, subject);
  if (result === undefined) {
    throw new DeputeError(ErrorReason.REVIEW_PENDING, "a person decides first", {
      metadata: { review: reviewId },
    });
  }
  const attestation = sign(verifier, request, known, hash, result);
  const wanted = await toStored(verifier.engine, "attestation", attestation, verifier.clock.now());
  const stored = await store.write(async (tx) => {
    const meanwhile = await answeredBefore(tx, key);
    if (meanwhile !== undefined) return meanwhile;
    await saveAttestation(tx, verifier.log, wanted, attestation);
    await rememberAnswer(tx, key, wanted.id, wanted.storeTime);
    // Who delegated the work, or the platform, says what became of it; a worker's own question earns him nothing.
    if (mayActFor(identity, known.contract.issuer)) {
      await pushOutcome(tx, wanted.id);
      tx.afterCommit(() => verifier.trust.wake());
    }
    return wanted.id;
  });
  return answer(stored === attestation.id ? attestation : (await readAttestation(store, stored)).attestation);
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
        durationMs: Number(request.durationMs),
        verificationOutcome: { method: contract.verification.method, ...result },
      },
      childAttestations: request.childAttestations,
    },
    keypair,
  );
}

/** Digest of everything that the request asks for but its id. */
function digestOf({ engine }: Verifier, request: AttestOutputRequest, hash: string): string {
  const { contractId, delegationId, costMicrocents, durationMs, childAttestations } = request;
  const body = [
    contractId,
    delegationId,
    String(costMicrocents),
    String(durationMs),
    childAttestations,
    hash,
  ];
  return encodeBase64Url(engine.blake2b256(canonicalBytes(body)));
}

function answer(attestation: Attestation): AttestOutputResponse {
  return create(AttestOutputResponseSchema, { attestation: toMessage("attestation", attestation) });
}
