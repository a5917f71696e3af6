import { create, type JsonValue } from "@bufbuild/protobuf";
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
import { schemaJudgementOf } from "../contract-book.ts";
import { toDocument, toMessage } from "../documents.ts";
import { assertOutputSize, readValue } from "../json-value.ts";
import { judgeOutput } from "../judging.ts";
import { findingsOf, outputFault, type Step } from "../rules/attestation-findings.ts";
import type { CheckResult } from "../rules/check-result.ts";
import type { Attestation } from "../rules/documents.ts";
import { isDeterministic } from "../rules/methods.ts";
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
  const given = request.output === undefined ? undefined : readValue(request.output, "output").value;
  const known = await verifier.contracts.get(attestation.contractId);
  const { contract } = known;

  const verified = verifyObject(engine, "attestation", attestation);
  const { output, fault } = outputOf(verifier, attestation, given);
  const text = fault === undefined ? JSON.stringify(output) : undefined;
  // The text checks the output schema for schema_match only.
  const schema = contract.verification.method === "schema_match" ? schemaJudgementOf(contract) : undefined;
  const judged = async (text: string): Promise<CheckResult> => {
    const outputHash = isDeterministic(contract.verification) ? "" : canonicalOutput(engine, output).hash;
    const subject = { known, output: text, outputHash, identity, signal: context.signal };
    const { result, reviewId } = await judgeOutput(verifier, subject);
    return result ?? { passed: false, details: `review ${reviewId} waits for a decision` };
  };
  const findings = findingsOf({
    signatureFault: verified.ok ? undefined : verified.refusal.detail,
    outputFault: fault,
    schema:
      schema === undefined || text === undefined
        ? undefined
        : await checker.verify(schema, text, context.signal),
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

interface FoundOutput {
  output: unknown;
  /** Why it is not the output that the attestation speaks of. */
  fault: string | undefined;
}

function outputOf({ engine }: Verifier, { result }: Attestation, given: JsonValue | undefined): FoundOutput {
  const field = "attestation.result.output";
  if (result.output !== undefined) assertOutputSize(JSON.stringify(result.output), field);
  const fault = outputFault({
    held: result.output === undefined ? undefined : canonicalOutput(engine, result.output, field),
    hash: result.outputHash,
    given: given === undefined ? undefined : canonicalOutput(engine, given),
  });
  return { output: result.output === undefined ? given : result.output, fault };
}
