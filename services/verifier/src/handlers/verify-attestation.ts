import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  AttestationStep,
  type VerifyAttestationRequest,
  type VerifyAttestationResponse,
  VerifyAttestationResponseSchema,
} from "@depute/contracts/depute/verifier/v1/attestation_service_pb";
import { invalid } from "@depute/core";
import { verifyObject } from "@depute/dct";
import type { Identity } from "@depute/service";
import { canonicalOutput, readAttestation } from "../attestations.ts";
import type { CheckCaller } from "../checker/checker.ts";
import { outputSchemaRuleOf } from "../contract-book.ts";
import { toDocument, toMessage } from "../documents.ts";
import { assertOutputSize, readText } from "../json-value.ts";
import { onEventLoop } from "../on-event-loop.ts";
import { checkCallerOf, payingTokenOf, verifyByContract } from "../output-verification.ts";
import { type Finding, findingsOf, outputFault, type Step } from "../rules/attestation-findings.ts";
import type { CheckResult } from "../rules/check-result.ts";
import type { Attestation } from "../rules/documents.ts";
import type { Verifier } from "../verifier.ts";

const STEPS: Record<Step, AttestationStep> = {
  signature: AttestationStep.SIGNATURE,
  output: AttestationStep.OUTPUT,
  verification: AttestationStep.VERIFICATION,
  cost: AttestationStep.COST,
};

/**
 * Verifies a single attestation without its children (DelegateOS 7.3). Reports the result of every step, even after a
 * failed step.
 */
export async function verifyAttestation(
  verifier: Verifier,
  request: VerifyAttestationRequest,
  context: HandlerContext,
): Promise<VerifyAttestationResponse> {
  const identity = await verifier.authority.identify(context);
  const attestation = await subjectOf(verifier, request);
  const sentOutput = readText(request.output, request.outputJson, "output");
  const { findings } = await examineAttestation(verifier, attestation, sentOutput, identity, context);
  return create(VerifyAttestationResponseSchema, {
    valid: findings.every(({ passed }) => passed),
    findings: findings.map(({ step, passed, details }) => ({ step: STEPS[step], passed, details })),
    attestation: toMessage("attestation", attestation),
  });
}

/** The results of examining an attestation by the steps of DelegateOS 7.3. */
export interface Examination {
  findings: Finding[];
  /**
   * Result of verifying the output; failed while a review is pending, undefined if no output matches the attestation.
   */
  verification: CheckResult | undefined;
  /** The id of the pending review; empty if no review is pending. */
  reviewId: string;
}

/**
 * Runs every step of DelegateOS 7.3.
 *
 * @param sentOutput JSON of the output that the caller sent; needed if the attestation contains only the output's hash
 * @throws DeputeError CONTRACT_NOT_FOUND, INVALID_REQUEST, LIMIT_EXCEEDED, and the errors of verifyByContract
 */
export async function examineAttestation(
  verifier: Verifier,
  attestation: Attestation,
  sentOutput: string | undefined,
  identity: Identity,
  context: HandlerContext,
): Promise<Examination> {
  const { engine, checker } = verifier;
  const knownContract = await verifier.contracts.get(attestation.contractId);
  const { contract } = knownContract;
  const verified = onEventLoop(() => verifyObject(engine, "attestation", attestation));
  const by = { identity, signal: context.signal };
  const outputResult = await outputOf(verifier, attestation, sentOutput, checkCallerOf(by));
  const { canonical: text, hash } = outputResult;
  // DelegateOS requires that the output fits the contract's output schema only for the method schema_match.
  const schema = contract.verification.method === "schema_match" ? outputSchemaRuleOf(contract) : undefined;
  const payingToken = payingTokenOf(undefined, context);
  const fits =
    schema === undefined || text === undefined
      ? undefined
      : await checker.verify(schema, text, checkCallerOf(by));
  const verdict =
    text === undefined
      ? undefined
      : await verifyByContract(verifier, {
          knownContract,
          output: text,
          outputHash: hash,
          payingToken,
          ...by,
        });
  const reviewId = verdict?.reviewId ?? "";
  const waiting = { passed: false, details: `review ${reviewId} is pending` };
  const verification = verdict && (verdict.result ?? waiting);
  const findings = findingsOf({
    signatureFault: verified.ok ? undefined : verified.refusal.detail,
    outputFault: outputResult.fault,
    schema: fits,
    verification,
    costMicrocents: attestation.result.costMicrocents,
    maxBudgetMicrocents: contract.constraints.maxBudgetMicrocents,
  });
  return { findings, verification, reviewId: verdict?.result === undefined ? reviewId : "" };
}

async function subjectOf({ store }: Verifier, { subject }: VerifyAttestationRequest): Promise<Attestation> {
  if (subject.case === "attestationId") return (await readAttestation(store, subject.value)).attestation;
  if (subject.case === "attestation") return toDocument("attestation", subject.value);
  throw invalid("subject", "must be an id or an attestation");
}

/** The output that matches an attestation, or the reason why no output matches. */
type FoundOutput =
  | { canonical: string; hash: string; fault: undefined }
  | { canonical: undefined; hash: string; fault: string };

async function outputOf(
  verifier: Verifier,
  { result }: Attestation,
  sentOutput: string | undefined,
  by: CheckCaller,
): Promise<FoundOutput> {
  const field = "attestation.result.output";
  const text = result.output === undefined ? undefined : JSON.stringify(result.output);
  if (text !== undefined) assertOutputSize(text, field);
  const heldOutput = text === undefined ? undefined : await canonicalOutput(verifier, text, by, field);
  const along = sentOutput === undefined ? undefined : await canonicalOutput(verifier, sentOutput, by);
  const fault = outputFault({ heldOutput, hash: result.outputHash, sent: along });
  const output = heldOutput ?? along;
  return fault === undefined && output !== undefined
    ? { ...output, fault: undefined }
    : { canonical: undefined, hash: "", fault: fault ?? "there is no output" };
}
