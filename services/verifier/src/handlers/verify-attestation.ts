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
import { canonicalOutput, readAttestation } from "../attestations.ts";
import type { By } from "../checker/checker.ts";
import { schemaJudgementOf } from "../contract-book.ts";
import { toDocument, toMessage } from "../documents.ts";
import { assertOutputSize, readText } from "../json-value.ts";
import { byOf, judgeOutput, payingTokenOf } from "../judging.ts";
import { findingsOf, outputFault, type Step } from "../rules/attestation-findings.ts";
import type { CheckResult } from "../rules/check-result.ts";
import type { Attestation } from "../rules/documents.ts";
import type { Verifier } from "../verifier.ts";

const STEPS: Record<Step, AttestationStep> = {
  signature: AttestationStep.SIGNATURE,
  output: AttestationStep.OUTPUT,
  verification: AttestationStep.VERIFICATION,
  cost: AttestationStep.COST,
};

/** Verifies one level of an attestation (DelegateOS 7.3). Every step is carried out and told, also after one failed. */
export async function verifyAttestation(
  verifier: Verifier,
  request: VerifyAttestationRequest,
  context: HandlerContext,
): Promise<VerifyAttestationResponse> {
  const { engine, checker } = verifier;
  const identity = await verifier.authority.identify(context);
  const attestation = await subjectOf(verifier, request);
  const given = readText(request.output, request.outputJson, "output");
  const known = await verifier.contracts.get(attestation.contractId);
  const { contract } = known;

  const verified = verifyObject(engine, "attestation", attestation);
  const by = { identity, signal: context.signal };
  const found = await outputOf(verifier, attestation, given, byOf(by));
  const { canonical: text, hash } = found;
  // The text checks the output schema for schema_match only.
  const schema = contract.verification.method === "schema_match" ? schemaJudgementOf(contract) : undefined;
  const payingToken = payingTokenOf(undefined, context);
  const judged = async (text: string): Promise<CheckResult> => {
    const subject = { known, output: text, outputHash: hash, payingToken, ...by };
    const { result, reviewId } = await judgeOutput(verifier, subject);
    return result ?? { passed: false, details: `review ${reviewId} waits for a decision` };
  };
  const findings = findingsOf({
    signatureFault: verified.ok ? undefined : verified.refusal.detail,
    outputFault: found.fault,
    schema:
      schema === undefined || text === undefined ? undefined : await checker.verify(schema, text, byOf(by)),
    verification: text === undefined ? undefined : await judged(text),
    costMicrocents: attestation.result.costMicrocents,
    maxBudgetMicrocents: contract.constraints.maxBudgetMicrocents,
  });
  return create(VerifyAttestationResponseSchema, {
    valid: findings.every(({ passed }) => passed),
    findings: findings.map(({ step, passed, details }) => ({ step: STEPS[step], passed, details })),
    attestation: toMessage("attestation", attestation),
  });
}

async function subjectOf({ store }: Verifier, { subject }: VerifyAttestationRequest): Promise<Attestation> {
  if (subject.case === "id") return (await readAttestation(store, subject.value)).attestation;
  if (subject.case === "attestation") return toDocument("attestation", subject.value);
  throw invalid("subject", "an id or an attestation is needed");
}

/** An output, or why it is not the one that the attestation speaks of. */
type FoundOutput =
  | { canonical: string; hash: string; fault: undefined }
  | { canonical: undefined; hash: string; fault: string };

async function outputOf(
  verifier: Verifier,
  { result }: Attestation,
  given: string | undefined,
  by: By,
): Promise<FoundOutput> {
  const field = "attestation.result.output";
  const text = result.output === undefined ? undefined : JSON.stringify(result.output);
  if (text !== undefined) assertOutputSize(text, field);
  const held = text === undefined ? undefined : await canonicalOutput(verifier, text, by, field);
  const along = given === undefined ? undefined : await canonicalOutput(verifier, given, by);
  const fault = outputFault({ held, hash: result.outputHash, given: along });
  const output = held ?? along;
  return fault === undefined && output !== undefined
    ? { ...output, fault: undefined }
    : { canonical: undefined, hash: "", fault: fault ?? "there is no output" };
}
